//! GroupByReducerDataset: groups elements by a key, and reduces each group to one element.

use super::group_by_window::number;
use super::saved::{read_list, read_size, write_list};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, spec};
use crate::function::{Call, Function, FunctionRun};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader,
    StateWriter, full_name,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, invalid};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "GroupByReducerDataset(input_dataset: variant, key_func_other_arguments: [Tkey_func_other_arguments], \
              init_func_other_arguments: [Tinit_func_other_arguments], \
              reduce_func_other_arguments: [Treduce_func_other_arguments], \
              finalize_func_other_arguments: [Tfinalize_func_other_arguments]) -> handle: variant; key_func: func; \
              init_func: func; reduce_func: func; finalize_func: func; Tkey_func_other_arguments: list(type) >= 0; \
              Tinit_func_other_arguments: list(type) >= 0; Treduce_func_other_arguments: list(type) >= 0; \
              Tfinalize_func_other_arguments: list(type) >= 0; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalGroupByReducerDataset(input_dataset: variant, \
              key_func_other_arguments: [Tkey_func_other_arguments], \
              init_func_other_arguments: [Tinit_func_other_arguments], \
              reduce_func_other_arguments: [Treduce_func_other_arguments], \
              finalize_func_other_arguments: [Tfinalize_func_other_arguments]) -> handle: variant; key_func: func; \
              init_func: func; reduce_func: func; finalize_func: func; Tkey_func_other_arguments: list(type) >= 0; \
              Tinit_func_other_arguments: list(type) >= 0; Treduce_func_other_arguments: list(type) >= 0; \
              Tfinalize_func_other_arguments: list(type) >= 0; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    let (key, init) = (Function::of(setup, "key_func")?, Function::of(setup, "init_func")?);
    let (reduce, finalize) = (Function::of(setup, "reduce_func")?, Function::of(setup, "finalize_func")?);
    let keys = setup.types("Tkey_func_other_arguments")?.len();
    let inits = setup.types("Tinit_func_other_arguments")?.len();
    let reduces = setup.types("Treduce_func_other_arguments")?.len();
    dataset_kernel(setup, move |_, inputs| {
        Ok(GroupByReducer {
            input: input_dataset(inputs, 0)?,
            key: key.capture(inputs.tensors(1, keys)?),
            init: init.capture(inputs.tensors(1 + keys, inits)?),
            reduce: reduce.capture(inputs.tensors(1 + keys + inits, reduces)?),
            finalize: finalize.capture(inputs.tensors_from(1 + keys + inits + reduces)?),
            spec: spec.clone(),
        })
    })
}

struct GroupByReducer {
    input: DatasetRef,
    key: Function,
    init: Function,
    reduce: Function,
    finalize: Function,
    spec: Spec,
}

impl Dataset for GroupByReducer {
    fn kind(&self) -> &'static str {
        "GroupByReducer"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(GroupByReducerIterator {
            input: place.input(&self.input)?,
            key: self.key.in_pipeline(&place.pipeline)?,
            init: self.init.in_pipeline(&place.pipeline)?,
            reduce: self.reduce.in_pipeline(&place.pipeline)?,
            finalize: self.finalize.in_pipeline(&place.pipeline)?,
            step: Step::Read,
            states: BTreeMap::new(),
            returned: 0,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

struct GroupByReducerIterator {
    input: Input,
    key: FunctionRun,
    init: FunctionRun,
    reduce: FunctionRun,
    finalize: FunctionRun,
    step: Step,
    states: BTreeMap<i64, Element>,
    /// The number of groups that were returned; they come in the order of their keys.
    returned: usize,
    prefix: Arc<str>,
}

/// What happens to the next element of the input, or to a group after the end of the input.
#[derive(Default)]
enum Step {
    #[default]
    Read,
    Key(Element, Call),
    Init(Element, i64, Call),
    Reduce(i64, Call),
    Finalize(Call),
}

impl GroupByReducerIterator {
    /// Reduces all elements of the input.
    fn poll_reduce(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        loop {
            let result = match &mut self.step {
                Step::Finalize(_) => return Poll::Ready(Ok(())),
                Step::Read => match ready!(self.input.poll_next(ctx))? {
                    None => return Poll::Ready(Ok(())),
                    Some(element) => {
                        self.step = Step::Key(element.clone(), self.key.call(element));
                        continue;
                    }
                },
                Step::Key(_, call) | Step::Init(_, _, call) | Step::Reduce(_, call) => ready!(call.poll(ctx)),
            };
            let step = std::mem::take(&mut self.step);
            self.step = self.after(step, result?)?;
        }
    }

    /// The step after a call that has returned.
    fn after(&mut self, step: Step, result: Element) -> Result<Step> {
        match step {
            Step::Key(element, _) => {
                let key = number(&result).ok_or_else(|| invalid!("`key_func` must return a scalar int64."))?;
                match self.states.contains_key(&key) {
                    true => Ok(self.reduced(key, element)),
                    false => Ok(Step::Init(element, key, self.init.call(result))),
                }
            }
            Step::Init(element, key, _) => {
                self.states.insert(key, result);
                Ok(self.reduced(key, element))
            }
            Step::Reduce(key, _) => {
                self.states.insert(key, result);
                Ok(Step::Read)
            }
            other => Ok(other),
        }
    }

    fn reduced(&self, key: i64, element: Element) -> Step {
        let state = self.states.get(&key).cloned().unwrap_or_default();
        Step::Reduce(key, self.reduce.call(state.into_iter().chain(element).collect()))
    }
}

impl Iterate for GroupByReducerIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        ready!(self.poll_reduce(ctx))?;
        if matches!(self.step, Step::Read) {
            let Some((_, state)) = self.states.iter().nth(self.returned) else { return Poll::Ready(Ok(None)) };
            self.step = Step::Finalize(self.finalize.call(state.clone()));
            self.returned += 1;
        }
        let Step::Finalize(call) = &mut self.step else { return Poll::Ready(Ok(None)) };
        let result = ready!(call.poll(ctx));
        self.step = Step::Read;
        Poll::Ready(result.map(Some))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        let name = |key: &str| full_name(prefix, key);
        self.input.save_present(writer)?;
        if !self.states.is_empty() {
            writer.int(prefix, &name("states_size"), self.states.len() as i64);
        }
        for (index, (&key, state)) in self.states.iter().enumerate() {
            writer.int(prefix, &name(&format!("states[{index}]->key")), key);
            if !state.is_empty() {
                writer.int(prefix, &name(&format!("states[{index}]->state_size")), state.len() as i64);
            }
            write_list(writer, prefix, &name(&format!("states[{index}]->state")), state);
        }
        if self.input.has_ended() {
            writer.string(prefix, &name("end_of_input"), "");
            writer.int(prefix, &name("keys_index"), self.returned as i64);
            writer.int(prefix, &name("keys_size"), self.states.len() as i64);
            for (index, &key) in self.states.keys().enumerate() {
                writer.int(prefix, &name(&format!("keys[{index}]")), key);
            }
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.prefix.clone();
        if reader.contains(&prefix, "end_of_input") {
            self.input.end();
            self.returned = reader.count(&prefix, "keys_index")?;
        }
        self.input.restore_present(reader)?;
        for index in 0..read_size(reader, &prefix, "states_size")? {
            let name = format!("states[{index}]");
            let count = read_size(reader, &prefix, &format!("{name}->state_size"))?;
            let state = read_list(reader, &prefix, &format!("{name}->state"), count)?;
            self.states.insert(reader.int(&prefix, &format!("{name}->key"))?, state);
        }
        Ok(())
    }
}

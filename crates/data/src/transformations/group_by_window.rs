//! GroupByWindowDataset: groups elements by a key, and reduces windows of each group to datasets.

use super::nested::Nested;
use super::saved::{read_list, read_size, write_list};
use super::window_op::window;
use crate::attrs::{DATASET, dataset_kernel, input_dataset, spec};
use crate::budget::cost;
use crate::function::{Call, Function, FunctionRun};
use crate::memory::Held;
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader,
    StateWriter, dataset_tensor, full_name,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use smallvec::smallvec;
use status::{Error, Result, internal, invalid};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Poll, ready};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "GroupByWindowDataset(input_dataset: variant, key_func_other_arguments: [Tkey_func_other_arguments], \
              reduce_func_other_arguments: [Treduce_func_other_arguments], \
              window_size_func_other_arguments: [Twindow_size_func_other_arguments]) -> handle: variant; \
              key_func: func; reduce_func: func; window_size_func: func; \
              Tkey_func_other_arguments: list(type) >= 0; Treduce_func_other_arguments: list(type) >= 0; \
              Twindow_size_func_other_arguments: list(type) >= 0; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalGroupByWindowDataset(input_dataset: variant, \
              key_func_other_arguments: [Tkey_func_other_arguments], \
              reduce_func_other_arguments: [Treduce_func_other_arguments], \
              window_size_func_other_arguments: [Twindow_size_func_other_arguments]) -> handle: variant; \
              key_func: func; reduce_func: func; window_size_func: func; \
              Tkey_func_other_arguments: list(type) >= 0; Treduce_func_other_arguments: list(type) >= 0; \
              Twindow_size_func_other_arguments: list(type) >= 0; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    let (key, reduce) = (Function::of(setup, "key_func")?, Function::of(setup, "reduce_func")?);
    let size = Function::of(setup, "window_size_func")?;
    let keys = setup.types("Tkey_func_other_arguments")?.len();
    let reduces = setup.types("Treduce_func_other_arguments")?.len();
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        Ok(GroupByWindow {
            input,
            key: key.capture(inputs.tensors(1, keys)?),
            reduce: reduce.capture(inputs.tensors(1 + keys, reduces)?),
            size: size.capture(inputs.tensors_from(1 + keys + reduces)?),
            spec: spec.clone(),
        })
    })
}

struct GroupByWindow {
    input: DatasetRef,
    key: Function,
    reduce: Function,
    size: Function,
    spec: Spec,
}

impl Dataset for GroupByWindow {
    fn kind(&self) -> &'static str {
        "GroupByWindow"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(GroupByWindowIterator {
            input: place.input(&self.input)?.kept(),
            key: self.key.in_pipeline(&place.pipeline)?,
            reduce: self.reduce.in_pipeline(&place.pipeline)?,
            reduce_name: self.reduce.name().clone(),
            size: self.size.in_pipeline(&place.pipeline)?,
            step: Step::Read,
            groups: BTreeMap::new(),
            memory: Held::new("GroupByWindow", u64::MAX),
            sizes: BTreeMap::new(),
            current: None,
            opened: 0,
            spec: self.input.spec().clone(),
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        match self.input.cardinality() {
            Cardinality::Infinite => Cardinality::Infinite,
            _ => Cardinality::Unknown,
        }
    }
}

struct GroupByWindowIterator {
    input: Input,
    key: FunctionRun,
    reduce: FunctionRun,
    reduce_name: Arc<str>,
    size: FunctionRun,
    step: Step,
    groups: BTreeMap<i64, Vec<Element>>,
    memory: Held,
    /// The window sizes of the keys that have come.
    sizes: BTreeMap<i64, i64>,
    /// The key of a full window with the iterator of its elements.
    current: Option<(i64, Nested)>,
    opened: i64,
    spec: Spec,
    prefix: Arc<str>,
}

/// What happens to the next element of the input.
#[derive(Default)]
enum Step {
    #[default]
    Read,
    Key(Element, Call),
    Size(Element, i64, Call),
}

impl GroupByWindowIterator {
    /// Adds elements to their groups until a window is full or the input has ended.
    fn poll_groups(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        while self.current.is_none() {
            match &mut self.step {
                Step::Read => match ready!(self.input.poll_next(ctx))? {
                    Some(element) => self.step = Step::Key(element.clone(), self.key.call(element)),
                    None => break,
                },
                Step::Key(_, call) => {
                    let result = ready!(call.poll(ctx));
                    self.accept_key(result)?;
                }
                Step::Size(_, _, call) => {
                    let result = ready!(call.poll(ctx));
                    self.accept_size(result)?;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn accept_key(&mut self, result: Result<Element>) -> Result<()> {
        let Step::Key(element, _) = std::mem::take(&mut self.step) else { return Ok(()) };
        let result = result?;
        let key = number(&result).ok_or_else(|| invalid!("`key_func` must return a scalar int64."))?;
        if self.sizes.contains_key(&key) {
            return self.add(key, element);
        }
        self.step = Step::Size(element, key, self.size.call(result));
        Ok(())
    }

    fn accept_size(&mut self, result: Result<Element>) -> Result<()> {
        let Step::Size(element, key, _) = std::mem::take(&mut self.step) else { return Ok(()) };
        let size = number(&result?).ok_or_else(|| invalid!("`window_size_func` must return a scalar int64."))?;
        if size <= 0 {
            return Err(invalid!("Window size must be greater than zero, but got {size}."));
        }
        self.sizes.insert(key, size);
        self.add(key, element)
    }

    fn add(&mut self, key: i64, element: Element) -> Result<()> {
        if let Err(error) = self.memory.add(cost(&element)) {
            self.groups = BTreeMap::new();
            self.input.end();
            return Err(error);
        }
        let group = self.groups.entry(key).or_default();
        group.push(element);
        if self.sizes.get(&key) == Some(&(group.len() as i64)) {
            self.flush(key, None)?;
        }
        Ok(())
    }

    /// Begins to reduce the window of a key.
    fn flush(&mut self, key: i64, saved: Option<&Arc<StateReader>>) -> Result<()> {
        let elements = self.groups.get(&key).cloned().unwrap_or_default();
        let group = dataset_tensor(window(elements, self.spec.clone()))?;
        let call = self.reduce.call(smallvec![Tensor::scalar(key), group]);
        let name = format!("{}[{}]", self.prefix, self.opened);
        self.opened += 1;
        let nested = match saved {
            Some(saved) => Nested::restored(call, name, saved),
            None => Nested::new(call, name),
        };
        self.current = Some((key, nested));
        Ok(())
    }

    fn poll_open(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        let Some((_, nested)) = &mut self.current else { return Poll::Ready(Ok(())) };
        let opened = ready!(nested.poll_open(ctx, "`reduce_func`", |error| reduce_failed(error, &self.reduce_name)));
        if opened.is_err() {
            self.current = None;
        }
        Poll::Ready(opened)
    }

    fn save_groups(&self, writer: &mut StateWriter) {
        let prefix = &*self.prefix;
        let mut int = |key: &str, value: i64| writer.int(prefix, &full_name(prefix, key), value);
        if !self.groups.is_empty() {
            int("groups_size", self.groups.len() as i64);
        }
        if !self.sizes.is_empty() {
            int("window_sizes_size", self.sizes.len() as i64);
        }
        for (index, (&key, &size)) in self.sizes.iter().enumerate() {
            int(&format!("window_sizes_[{index}]->key"), key);
            int(&format!("window_sizes_[{index}]->value"), size);
        }
        for (index, (&key, group)) in self.groups.iter().enumerate() {
            let name = full_name(prefix, &format!("groups_[{index}]"));
            writer.int(prefix, &format!("{name}->key"), key);
            writer.int(prefix, &format!("{name}_size"), group.len() as i64);
            for (place, element) in group.iter().enumerate() {
                writer.int(prefix, &format!("{name}[{place}]_size"), element.len() as i64);
                write_list(writer, prefix, &format!("{name}[{place}]"), element);
            }
        }
    }

    fn restore_groups(&mut self, reader: &StateReader) -> Result<()> {
        let prefix = self.prefix.clone();
        for index in 0..read_size(reader, &prefix, "window_sizes_size")? {
            let key = reader.int(&prefix, &format!("window_sizes_[{index}]->key"))?;
            self.sizes.insert(key, reader.int(&prefix, &format!("window_sizes_[{index}]->value"))?);
        }
        for index in 0..read_size(reader, &prefix, "groups_size")? {
            let name = format!("groups_[{index}]");
            let element = |place| {
                let count = reader.count(&prefix, &format!("{name}[{place}]_size"))?;
                read_list(reader, &prefix, &format!("{name}[{place}]"), count)
            };
            let group = (0..reader.count(&prefix, &format!("{name}_size"))?).map(element).collect::<Result<_>>()?;
            self.groups.insert(reader.int(&prefix, &format!("{name}->key"))?, group);
        }
        Ok(())
    }
}

/// The only element of the only result of a function.
pub(crate) fn number(result: &Element) -> Option<i64> {
    match result.as_slice() {
        [result] => match result.values::<i64>() {
            Ok(&[number]) => Some(number),
            _ => None,
        },
        _ => None,
    }
}

fn reduce_failed(error: Error, function: &str) -> Error {
    internal!(
        "Got error code {} and message: {{\n{}\n}} \nfrom running user-defined function {function}: ",
        error.code.name(),
        error.message
    )
}

impl Iterate for GroupByWindowIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        loop {
            ready!(self.poll_groups(ctx))?;
            if self.current.is_none() {
                let Some((&key, _)) = self.groups.first_key_value() else { return Poll::Ready(Ok(None)) };
                self.flush(key, None)?;
            }
            ready!(self.poll_open(ctx))?;
            let Some((key, nested)) = &mut self.current else { return Poll::Ready(Ok(None)) };
            let next = ready!(nested.poll_next(ctx));
            if !matches!(next, Ok(None)) {
                return Poll::Ready(next);
            }
            let bytes = self.groups.remove(key).map_or(0, |group| group.iter().map(cost).sum());
            self.memory.remove(bytes);
            self.current = None;
        }
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        ready!(self.poll_open(ctx))?;
        if let Some((_, nested)) = &mut self.current {
            ready!(nested.poll_settle(ctx))?;
        }
        crate::iterate::settle_all(self.input.as_list(), ctx)
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        if self.input.has_ended() {
            writer.string(prefix, &full_name(prefix, "end_of_input"), "");
        }
        self.input.save_present(writer)?;
        self.save_groups(writer);
        match &self.current {
            Some((key, nested)) => {
                writer.int(prefix, &full_name(prefix, "current_key"), *key);
                nested.save(writer)?;
            }
            None => writer.string(prefix, &full_name(prefix, "current_iterator_not_initialized"), ""),
        }
        writer.int(prefix, &full_name(prefix, "group_counter"), self.opened - 1);
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.prefix.clone();
        if reader.contains(&prefix, "end_of_input") {
            self.input.end();
        }
        self.input.restore_present(reader)?;
        self.restore_groups(reader)?;
        self.opened = reader.int(&prefix, "group_counter")?;
        match reader.contains(&prefix, "current_iterator_not_initialized") {
            true => self.opened = self.opened.saturating_add(1),
            false => self.flush(reader.int(&prefix, "current_key")?, Some(reader))?,
        }
        Ok(())
    }
}

//! FlatMapDataset: the elements of the datasets that a function returns, one dataset after the other.

use super::map::in_function;
use super::nested::Nested;
use super::saved::{read_list, write_list};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, spec};
use crate::dataset::only;
use crate::function::{Function, FunctionRun};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, unimplemented_op};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "FlatMapDataset(input_dataset: variant, other_arguments: [Targuments]) -> handle: variant; f: func; \
          Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
          metadata: string = \"\"",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (spec, function) = (spec(setup)?, Function::of(setup, "f")?);
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        Ok(FlatMap { input, function: function.capture(inputs.tensors_from(1)?), spec: spec.clone() })
    })
}

#[derive(Clone)]
struct FlatMap {
    input: DatasetRef,
    function: Function,
    spec: Spec,
}

impl Dataset for FlatMap {
    fn kind(&self) -> &'static str {
        "FlatMap"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(FlatMap { input, ..self.clone() }) })
    }

    fn functions(&self) -> Vec<&Function> {
        vec![&self.function]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(FlatMapIterator {
            input: place.input(&self.input)?,
            function: self.function.in_pipeline(&place.pipeline)?,
            current: None,
            opened: 0,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }

    fn check_random_indexing(&self, _: Vec<Result<()>>) -> Result<()> {
        Err(unimplemented_op!(
            "Please consider applying maps on each dataset, concatenating them into one dataset and apply global \
             shuffle dataset op onto the dataset to achieve the same result as flat map with global shuffling."
        ))
    }
}

struct FlatMapIterator {
    input: Input,
    function: FunctionRun,
    /// An element of the input with the iterator of its dataset.
    current: Option<(Element, Nested)>,
    /// The number of datasets that were opened.
    opened: usize,
    prefix: Arc<str>,
}

impl FlatMapIterator {
    /// Waits for the dataset of the current element; an error drops it.
    fn poll_open(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        let Some((_, nested)) = &mut self.current else { return Poll::Ready(Ok(())) };
        let failed = |error| in_function(error, "FlatMapDataset", &self.prefix);
        let opened = ready!(nested.poll_open(ctx, "Function", failed));
        if opened.is_err() {
            self.current = None;
        }
        Poll::Ready(opened)
    }

    fn nested_prefix(&self, index: usize) -> String {
        format!("{}[{index}]", self.prefix)
    }
}

impl Iterate for FlatMapIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        loop {
            ready!(self.poll_open(ctx))?;
            if let Some((_, nested)) = &mut self.current {
                let next = ready!(nested.poll_next(ctx));
                if !matches!(next, Ok(None)) {
                    return Poll::Ready(next);
                }
                self.current = None;
            }
            let Some(element) = ready!(self.input.poll_next(ctx))? else { return Poll::Ready(Ok(None)) };
            let call = self.function.call(element.clone());
            self.current = Some((element, Nested::new(call, self.nested_prefix(self.opened))));
            self.opened += 1;
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
        self.input.save(writer, prefix, "exhausted")?;
        if self.input.has_ended() {
            return Ok(());
        }
        writer.int(prefix, "element_index", self.opened as i64);
        writer.int(prefix, "current_element_iterator_uninitialized", i64::from(self.current.is_none()));
        let Some((element, nested)) = &self.current else { return Ok(()) };
        writer.int(prefix, "inputs_size", element.len() as i64);
        write_list(writer, prefix, "inputs", element);
        nested.save(writer)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.prefix.clone();
        self.input.restore(reader, &prefix, "exhausted")?;
        if self.input.has_ended() {
            return Ok(());
        }
        self.opened = reader.count(&prefix, "element_index")?;
        if reader.int(&prefix, "current_element_iterator_uninitialized")? == 0 {
            let element = read_list(reader, &prefix, "inputs", reader.count(&prefix, "inputs_size")?)?;
            let call = self.function.call(element.clone());
            let name = self.nested_prefix(self.opened.saturating_sub(1));
            self.current = Some((element, Nested::restored(call, name, reader)));
        }
        Ok(())
    }
}

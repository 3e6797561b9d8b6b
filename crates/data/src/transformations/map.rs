//! MapDataset: applies a function to each element.

use super::determinism::Determinism;
use super::parallel_map::ParallelMap;
use super::random_access::{check_index, mapped};
use super::saved::{read_input, write_input};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, spec};
use crate::dataset::{PendingElement, only};
use crate::function::{Call, Function, FunctionRun};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Code, Error, Result, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MapDataset(input_dataset: variant, other_arguments: [Targuments]) -> handle: variant; f: func; \
              Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              use_inter_op_parallelism: bool = true; preserve_cardinality: bool = false; \
              force_synchronous: bool = false; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalMapDataset(input_dataset: variant, other_arguments: [Targuments]) -> handle: variant; f: func; \
              Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              use_inter_op_parallelism: bool = true; preserve_cardinality: bool = false; \
              force_synchronous: bool = false",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (spec, function) = (spec(setup)?, Function::of(setup, "f")?);
    let preserves_cardinality = setup.bool("preserve_cardinality")?;
    let is_synchronous = setup.bool("force_synchronous")?;
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let function = function.capture(inputs.tensors_from(1)?);
        Ok(Map { input, function, preserves_cardinality, is_synchronous, spec: spec.clone() })
    })
}

#[derive(Clone)]
pub(crate) struct Map {
    pub input: DatasetRef,
    pub function: Function,
    pub preserves_cardinality: bool,
    /// Must not be made parallel.
    pub is_synchronous: bool,
    pub spec: Spec,
}

impl Map {
    /// The same with calls for several elements at once.
    pub(crate) fn parallel(&self) -> DatasetRef {
        Arc::new(ParallelMap {
            kind: ParallelMap::KIND,
            input: self.input.clone(),
            function: self.function.clone(),
            calls: None,
            determinism: Determinism::Kept,
            preserves_cardinality: self.preserves_cardinality,
            is_unbounded: false,
            spec: self.spec.clone(),
        })
    }
}

impl Dataset for Map {
    fn kind(&self) -> &'static str {
        "Map"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(Map { input, ..self.clone() }) })
    }

    fn functions(&self) -> Vec<&Function> {
        vec![&self.function]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(MapIterator {
            input: place.input(&self.input)?,
            function: self.function.in_pipeline(&place.pipeline)?,
            call: None,
            preserves_cardinality: self.preserves_cardinality,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        if self.preserves_cardinality { self.input.cardinality() } else { Cardinality::Unknown }
    }

    fn check_random_indexing(&self, inputs: Vec<Result<()>>) -> Result<()> {
        inputs.into_iter().collect()
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        check_index(self, "Map", index)?;
        mapped(pipeline, &self.function, self.input.element_at(pipeline, index)?)
    }
}

struct MapIterator {
    input: Input,
    function: FunctionRun,
    /// The call for the next element.
    call: Option<Call>,
    preserves_cardinality: bool,
    prefix: Arc<str>,
}

impl Iterate for MapIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.call.is_none() {
            match ready!(self.input.poll_next(ctx)) {
                Ok(Some(element)) => self.call = Some(self.function.call(element)),
                end => return Poll::Ready(end),
            }
        }
        let Some(call) = &mut self.call else { return Poll::Ready(Ok(None)) };
        let result = ready!(call.poll(ctx));
        self.call = None;
        Poll::Ready(function_result(result, self.preserves_cardinality, "MapDataset", &self.prefix))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        write_input(writer, &self.prefix, &self.input)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        read_input(reader, &self.prefix, &mut self.input)
    }
}

/// The element that a function returned, with the place of errors. OutOfRange ends the sequence, unless its length is
/// promised.
pub(crate) fn function_result(
    result: Result<Element>,
    preserves_cardinality: bool,
    op: &str,
    prefix: &str,
) -> Result<Option<Element>> {
    let describe = |error: Error| match error.code {
        Code::OutOfRange => error,
        _ => in_function(error, op, prefix),
    };
    function_end(result.map_err(describe), preserves_cardinality)
}

/// As `function_result`, for errors that are described already.
pub(crate) fn function_end(result: Result<Element>, preserves_cardinality: bool) -> Result<Option<Element>> {
    match result {
        Ok(element) => Ok(Some(element)),
        Err(error) if error.code == Code::OutOfRange && preserves_cardinality => {
            Err(invalid!("Function invocation produced OutOfRangeError: {}", error.message))
        }
        Err(error) if error.code == Code::OutOfRange => Ok(None),
        Err(error) => Err(error),
    }
}

/// The error of a function with the place of its dataset in the pipeline.
pub(crate) fn in_function(error: Error, op: &str, prefix: &str) -> Error {
    let message = &error.message;
    let message =
        format!("Error in user-defined function passed to {op} transformation with iterator: {prefix}: {message}");
    Error { message, ..error }
}

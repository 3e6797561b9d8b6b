//! ScanDataset: applies a function to each element and a state, which the function updates.

use super::saved::{read_input, read_list, write_input, write_list};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, spec};
use crate::function::{Call, Function, FunctionRun};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader,
    StateWriter, full_name,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Code, Result, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ScanDataset(input_dataset: variant, initial_state: [Tstate], other_arguments: [Targuments]) -> \
              handle: variant; f: func; Tstate: list(type) >= 1; Targuments: list(type) >= 0; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; preserve_cardinality: bool = false; \
              use_default_device: bool = true; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalScanDataset(input_dataset: variant, initial_state: [Tstate], \
              other_arguments: [Targuments]) -> handle: variant; f: func; Tstate: list(type) >= 1; \
              Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              preserve_cardinality: bool = false",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (spec, function, state_types) = (spec(setup)?, Function::of(setup, "f")?, setup.types("Tstate")?);
    let preserves_cardinality = setup.bool("preserve_cardinality")?;
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let initial = inputs.tensors(1, state_types.len())?.into();
        let function = function.capture(inputs.tensors_from(1 + state_types.len())?);
        let state_types = state_types.clone();
        Ok(Scan { input, initial, state_types, function, preserves_cardinality, spec: spec.clone() })
    })
}

struct Scan {
    input: DatasetRef,
    initial: Element,
    state_types: Vec<DType>,
    function: Function,
    preserves_cardinality: bool,
    spec: Spec,
}

impl Scan {
    /// The state and the element that the function returned.
    fn split(&self, mut results: Element) -> Result<(Element, Element)> {
        let (states, outputs) = (self.state_types.len(), self.spec.types.len());
        if results.len() != states + outputs {
            return Err(invalid!(
                "scan_func must return {states} states and {outputs} components, but returned {} values",
                results.len()
            ));
        }
        let types = self.state_types.iter().chain(&self.spec.types);
        for (index, (result, &expected)) in results.iter().zip(types).enumerate() {
            check_type(index, result, expected)?;
        }
        for (index, (result, expected)) in results.iter().skip(states).zip(&self.spec.shapes).enumerate() {
            if !expected.accepts(result.shape()) {
                return Err(invalid!(
                    "Got wrong shape for scan_func return value {} (expected {expected}, got {}).",
                    states + index,
                    result.shape()
                ));
            }
        }
        let element = results.drain(states..).collect();
        Ok((results, element))
    }
}

fn check_type(index: usize, result: &Tensor, expected: DType) -> Result<()> {
    if result.dtype() == expected {
        return Ok(());
    }
    let found = result.dtype();
    Err(invalid!("Got wrong type for scan_func return value {index} (expected {expected}, got {found})."))
}

impl Dataset for Scan {
    fn kind(&self) -> &'static str {
        "Scan"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(ScanIterator {
            input: place.input(&self.input)?,
            function: self.function.in_pipeline(&place.pipeline)?,
            call: None,
            state: self.initial.clone(),
            dataset: self,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        if self.preserves_cardinality { self.input.cardinality() } else { Cardinality::Unknown }
    }
}

struct ScanIterator {
    input: Input,
    function: FunctionRun,
    call: Option<Call>,
    state: Element,
    dataset: Arc<Scan>,
    prefix: Arc<str>,
}

impl ScanIterator {
    fn accept(&mut self, results: Result<Element>) -> Result<Option<Element>> {
        match results {
            Ok(results) => {
                let (state, element) = self.dataset.split(results)?;
                self.state = state;
                Ok(Some(element))
            }
            Err(error) if error.code == Code::OutOfRange && self.dataset.preserves_cardinality => {
                Err(invalid!("Function invocation produced OutOfRangeError: {}", error.message))
            }
            Err(error) if error.code == Code::OutOfRange => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Iterate for ScanIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.call.is_none() {
            let Some(element) = ready!(self.input.poll_next(ctx))? else { return Poll::Ready(Ok(None)) };
            let arguments = self.state.iter().cloned().chain(element).collect();
            self.call = Some(self.function.call(arguments));
        }
        let Some(call) = &mut self.call else { return Poll::Ready(Ok(None)) };
        let results = ready!(call.poll(ctx));
        self.call = None;
        Poll::Ready(self.accept(results))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        writer.int(prefix, &full_name(prefix, "state_size"), self.state.len() as i64);
        write_list(writer, prefix, &full_name(prefix, "state"), &self.state);
        write_input(writer, prefix, &self.input)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let count = reader.count(&self.prefix, "state_size")?;
        self.state = read_list(reader, &self.prefix, "state", count)?;
        read_input(reader, &self.prefix, &mut self.input)
    }
}

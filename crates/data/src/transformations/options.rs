//! OptionsDataset, GetOptions and FinalizeDataset: options that the user sets for a dataset.

use crate::attrs::{DATASET, dataset_kernel, dataset_ref_kernel, input_dataset, reading, spec};
use crate::dataset::only;
use crate::options::merged_bytes;
use crate::{Cardinality, Dataset, DatasetRef, Iterate, PendingElement, Pipeline, Place, Spec, dataset_of, wire};
use op::shapes;
use op::{Grad, Kernel, Op, PLAIN, Setup, unary};
use status::Result;
use std::sync::Arc;
use tensor::{Bytes, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "OptionsDataset(input_dataset: variant) -> handle: variant; serialized_options: string; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "GetOptions(input_dataset: variant) -> serialized_options: string",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| reading(setup, get_kernel),
        facts: PLAIN,
    },
    Op {
        def: "FinalizeDataset(input_dataset: variant) -> handle: variant; has_captured_ref: bool = false; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: finalize_kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (spec, serialized) = (spec(setup)?, setup.bytes("serialized_options")?);
    dataset_kernel(setup, move |_, inputs| {
        wire::merge(&mut wire::OptionsMessage::default(), &serialized)?; // an error of this node
        Ok(WithOptions { input: input_dataset(inputs, 0)?, serialized: serialized.clone(), spec: spec.clone() })
    })
}

fn get_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, dataset| Ok(Tensor::string(merged_bytes(&dataset_of(&dataset)?)?))))
}

/// Options are applied when an iterator begins.
fn finalize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dataset_ref_kernel(setup, |_, inputs| input_dataset(inputs, 0))
}

#[derive(Clone)]
struct WithOptions {
    input: DatasetRef,
    serialized: Bytes,
    spec: Spec,
}

impl Dataset for WithOptions {
    fn kind(&self) -> &'static str {
        "Options"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(WithOptions { input, ..self.clone() }) })
    }

    /// The iterator is that of the input, under the name that it would have without options.
    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let prefix = place.prefix.strip_suffix("::Options").unwrap_or(&place.prefix);
        self.input.clone().iterate(&Place::root(&place.pipeline, prefix, &self.input))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn options(&self) -> Option<Bytes> {
        Some(self.serialized.clone())
    }

    fn check_random_indexing(&self, inputs: Vec<Result<()>>) -> Result<()> {
        inputs.into_iter().collect()
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        self.input.element_at(pipeline, index)
    }
}

//! WrapDatasetVariant and UnwrapDatasetVariant: a dataset as a value that no op takes for a dataset.

use crate::attrs::{DATASET, reading};
use crate::dataset_of;
use op::shapes;
use op::{Grad, Kernel, Op, Setup, unary};
use status::{Result, invalid};
use std::any::Any;
use std::sync::Arc;
use tensor::{Shape, Tensor, Variant, VariantData, VariantObject};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "WrapDatasetVariant(input_handle: variant) -> output_handle: variant",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| reading(setup, |_| Ok(unary(|_, dataset| wrap(dataset)))),
        facts: DATASET,
    },
    Op {
        def: "UnwrapDatasetVariant(input_handle: variant) -> output_handle: variant",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: unwrap_kernel,
        facts: DATASET,
    },
];

/// The tensor with a dataset.
#[derive(Debug)]
struct Wrapped(Tensor);

impl VariantObject for Wrapped {
    fn encode(&self) -> Result<VariantData> {
        let type_name = "tensorflow::WrappedDatasetVariantWrapper".to_string();
        Ok(VariantData { type_name, tensors: vec![self.0.clone()], ..VariantData::default() })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn wrap(dataset: Tensor) -> Result<Tensor> {
    dataset_of(&dataset)?;
    Tensor::from_variants(Shape::scalar(), vec![Variant::Object(Arc::new(Wrapped(dataset)))])
}

fn unwrap_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, wrapped| {
        let ([variant], 0) = (wrapped.variants()?, wrapped.shape().rank()) else {
            return Err(invalid!("Dataset tensor must be a scalar of dtype DT_VARIANT."));
        };
        let found = variant.object::<Wrapped>().map(|wrapped| wrapped.0.clone());
        found.ok_or_else(|| invalid!("Tensor must be a WrappedDataset variant object."))
    }))
}

//! What the kernels of many dataset ops have in common.

use crate::{Dataset, DatasetRef, Spec, dataset_of, dataset_tensor};
use op::{Ctx, Facts, Inputs, Kernel, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::Element as Number;

/// The facts of an op that returns a dataset.
pub const DATASET: Facts = PLAIN.outputs_stay();

/// Types and shapes in the attributes `output_types` and `output_shapes`.
pub fn spec(setup: &Setup<'_>) -> Result<Spec> {
    Ok(Spec { types: setup.types("output_types")?, shapes: setup.list("output_shapes")?.shapes.clone() })
}

/// The kernel of an op that returns a dataset.
pub fn dataset_kernel<D: Dataset>(
    build: impl Fn(&Ctx<'_>, &mut Inputs) -> Result<D> + Send + Sync + 'static,
) -> Result<Kernel> {
    dataset_ref_kernel(move |ctx, inputs| Ok(Arc::new(build(ctx, inputs)?)))
}

/// As `dataset_kernel`, for datasets of several Rust types.
pub fn dataset_ref_kernel(
    build: impl Fn(&Ctx<'_>, &mut Inputs) -> Result<DatasetRef> + Send + Sync + 'static,
) -> Result<Kernel> {
    Ok(many(move |ctx, mut inputs| Ok(outputs![dataset_tensor(build(ctx, &mut inputs)?)?])))
}

/// The dataset in input `index`.
pub fn input_dataset(inputs: &mut Inputs, index: usize) -> Result<DatasetRef> {
    dataset_of(inputs.look(index)?)
}

/// The scalar in input `index`, which is called `name` in errors.
pub fn scalar<T: Number>(inputs: &mut Inputs, index: usize, name: &str) -> Result<T> {
    let tensor = inputs.look(index)?;
    if tensor.shape().rank() != 0 {
        return Err(invalid!("{name} must be a scalar"));
    }
    tensor.to_scalar()
}

/// The string scalar in input `index`, which is called `name` in errors.
pub fn string_scalar(inputs: &mut Inputs, index: usize, name: &str) -> Result<String> {
    let tensor = inputs.look(index)?;
    if tensor.shape().rank() != 0 {
        return Err(invalid!("{name} must be a scalar"));
    }
    Ok(String::from_utf8_lossy(&tensor.to_string_scalar()?).into_owned())
}

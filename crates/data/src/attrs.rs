//! What the kernels of many dataset ops have in common.

use crate::dataset::{dataset_tensor_from, fingerprint_of};
use crate::graphs::{GraphReader, Maker, Origin};
use crate::{Dataset, DatasetRef, Spec, dataset_of};
use op::{Ctx, Facts, Inputs, Kernel, PLAIN, Run, Setup, many, outputs};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{Element as Number, Tensor};

/// The facts of an op that returns a dataset.
pub const DATASET: Facts = PLAIN.outputs_stay();

/// Types and shapes in the attributes `output_types` and `output_shapes`.
pub fn spec(setup: &Setup<'_>) -> Result<Spec> {
    Ok(Spec { types: setup.types("output_types")?, shapes: setup.list("output_shapes")?.shapes.clone() })
}

/// The kernel of an op that returns a dataset, which is recognised by its node and its inputs: see
/// `fingerprint_of_input`.
pub fn dataset_kernel<D: Dataset>(
    setup: &Setup<'_>,
    build: impl Fn(&Ctx<'_>, &mut Inputs) -> Result<D> + Send + Sync + 'static,
) -> Result<Kernel> {
    seeded_kernel(setup, Vec::new(), build)
}

/// As `dataset_kernel`, for datasets of several Rust types.
pub fn dataset_ref_kernel(
    setup: &Setup<'_>,
    build: impl Fn(&Ctx<'_>, &mut Inputs) -> Result<DatasetRef> + Send + Sync + 'static,
) -> Result<Kernel> {
    described_kernel(setup, Vec::new(), build)
}

/// As `dataset_kernel`, for datasets that are equal in TensorFlow's sense whatever the inputs at the positions `seeds` are.
pub fn seeded_kernel<D: Dataset>(
    setup: &Setup<'_>,
    seeds: Vec<usize>,
    build: impl Fn(&Ctx<'_>, &mut Inputs) -> Result<D> + Send + Sync + 'static,
) -> Result<Kernel> {
    described_kernel(setup, seeds, move |ctx, inputs| Ok(Arc::new(build(ctx, inputs)?)))
}

/// As `dataset_kernel`, for datasets whose elements do not follow from the node and its inputs.
pub fn opaque_kernel<D: Dataset>(
    build: impl Fn(&Ctx<'_>, &mut Inputs) -> Result<D> + Send + Sync + 'static,
) -> Result<Kernel> {
    Ok(many(move |ctx, mut inputs| {
        let nesting = nesting(&mut inputs);
        Ok(outputs![dataset_tensor_from(Arc::new(build(ctx, &mut inputs)?), None, nesting)?])
    }))
}

fn described_kernel(
    setup: &Setup<'_>,
    seeds: Vec<usize>,
    build: impl Fn(&Ctx<'_>, &mut Inputs) -> Result<DatasetRef> + Send + Sync + 'static,
) -> Result<Kernel> {
    let (maker, reader) = (Maker::of(setup, seeds), GraphReader::of(setup));
    Ok(many(move |ctx, mut inputs| {
        reader.read_inputs(ctx, &mut inputs)?;
        let taken = (0..inputs.len()).map(|index| inputs.look(index).cloned()).collect::<Result<_>>();
        let origin = taken.ok().map(|inputs| Origin { maker: maker.clone(), inputs });
        let nesting = nesting(&mut inputs);
        Ok(outputs![dataset_tensor_from(build(ctx, &mut inputs)?, origin, nesting)?])
    }))
}

/// A kernel whose inputs may be datasets in their serialised form, as other tasks send them.
pub fn reading(setup: &Setup<'_>, kernel: fn(&Setup<'_>) -> Result<Kernel>) -> Result<Kernel> {
    let (reader, mut kernel) = (GraphReader::of(setup), kernel(setup)?);
    kernel.run = match kernel.run {
        Run::Unary(run) => Run::Unary(Box::new(move |ctx, tensor| {
            let read = reader.read_tensor(ctx, &tensor)?;
            run(ctx, read.unwrap_or(tensor))
        })),
        Run::Many(run) => Run::Many(Box::new(move |ctx, mut inputs| {
            reader.read_inputs(ctx, &mut inputs)?;
            run(ctx, inputs)
        })),
        Run::Later(run) => {
            Run::Later(Box::new(move |ctx, mut inputs, done| match reader.read_inputs(ctx, &mut inputs) {
                Ok(()) => run(ctx, inputs, done),
                Err(error) => done(Err(error)),
            }))
        }
        other => other,
    };
    Ok(kernel)
}

/// How deep variants are inside each other in the inputs, which the dataset keeps.
fn nesting(inputs: &mut Inputs) -> usize {
    let each = (0..inputs.len()).filter_map(|index| inputs.look(index).ok().map(Tensor::nesting));
    each.max().unwrap_or(0)
}

/// A number that is the same for equal datasets in input `index`, also in other processes; none if equal datasets cannot
/// be recognised.
pub fn fingerprint_of_input(inputs: &Inputs, index: usize) -> Result<Option<u64>> {
    Ok(fingerprint_of(inputs.look(index)?))
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

//! What the kernels of many dataset ops have in common.

use crate::dataset::{Origin, dataset_tensor_from, fingerprint_of};
use crate::{Dataset, DatasetRef, Spec, dataset_of};
use graph::wire::attr_to_bytes;
use graph::{AttrValue, hash64};
use op::{Ctx, Facts, Inputs, Kernel, PLAIN, Setup, many, outputs};
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
    let node = fingerprint_of_node(setup);
    Ok(many(move |ctx, mut inputs| {
        let counted = (0..inputs.len()).filter(|index| !seeds.contains(index));
        let taken = counted.map(|index| inputs.look(index).cloned()).collect::<Result<_>>();
        let origin = node.and_then(|node| Some(Origin { node, inputs: taken.ok()? }));
        let nesting = nesting(&mut inputs);
        Ok(outputs![dataset_tensor_from(build(ctx, &mut inputs)?, origin, nesting)?])
    }))
}

/// How deep variants are inside each other in the inputs, which the dataset keeps.
fn nesting(inputs: &mut Inputs) -> usize {
    let each = (0..inputs.len()).filter_map(|index| inputs.look(index).ok().map(Tensor::nesting));
    each.max().unwrap_or(0)
}

/// The fingerprint of a node's op and attributes; none if it uses a function whose definition is not known.
fn fingerprint_of_node(setup: &Setup<'_>) -> Option<u64> {
    let mut text = setup.def().op.clone();
    let counts = |name: &str| !name.starts_with('_') && name != "metadata";
    for (name, value) in setup.def().attrs.iter().filter(|(name, _)| counts(name)) {
        text += &format!(";{name}={}", fingerprint_of_attr(setup, value)?);
    }
    Some(hash64(text.as_bytes()))
}

fn fingerprint_of_attr(setup: &Setup<'_>, value: &AttrValue) -> Option<u64> {
    match value {
        AttrValue::Func(function) => setup.fingerprint(function),
        AttrValue::List(list) if !list.funcs.is_empty() => {
            let each = list.funcs.iter().map(|function| setup.fingerprint(function));
            Some(hash64(format!("{:?}", each.collect::<Option<Vec<u64>>>()?).as_bytes()))
        }
        _ => Some(hash64(&attr_to_bytes(value))),
    }
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

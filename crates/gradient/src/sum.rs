//! The gradient of a value that was used several times: the sum over its uses.

use crate::nodes::{constant, densify};
use graph::Scope;
use op::{Gradient, Slices};
use tensor::{DType, Tensor};

/// The sum of gradients of one value; none if there are none. Slices are summed by putting their rows one
/// after the other.
pub(crate) fn sum(scope: &Scope, mut gradients: Vec<Gradient>) -> Option<Gradient> {
    if gradients.len() <= 1 {
        return gradients.pop();
    }
    let slices: Option<Vec<&Slices>> = gradients
        .iter()
        .map(|gradient| match gradient {
            Gradient::Sparse(slices) => Some(slices),
            Gradient::Dense(_) => None,
        })
        .collect();
    if let Some(slices) = slices {
        return Some(Gradient::Sparse(joined(scope, &slices)));
    }
    let terms: Vec<_> = gradients.iter().map(|gradient| densify(gradient).seen_from(scope)).collect();
    Some(Gradient::Dense(scope.op("AddN").inputs(&terms).output()))
}

fn joined(scope: &Scope, slices: &[&Slices]) -> Slices {
    let wide = slices.iter().any(|slices| slices.indices.dtype() == DType::I64);
    let indices: Vec<_> = slices
        .iter()
        .map(|slices| match wide && slices.indices.dtype() != DType::I64 {
            true => scope.op("Cast").input(&slices.indices).attr("DstT", DType::I64).output(),
            false => slices.indices.clone(),
        })
        .collect();
    let axis = constant(scope, Tensor::scalar(0i32));
    let values = slices.iter().map(|slices| &slices.values);
    Slices {
        indices: scope.op("ConcatV2").named("concat").inputs(&indices).input(&axis).output(),
        values: scope.op("ConcatV2").named("concat").inputs(values).input(&axis).output(),
        shape: slices.iter().find_map(|slices| slices.shape.clone()),
    }
}

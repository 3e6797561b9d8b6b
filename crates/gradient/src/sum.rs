//! Sums the gradients of a value that is used several times.

use crate::nodes::{constant, densify};
use graph::Scope;
use graph::builtin_ops::{ADD_N, CAST, CONCAT_V2};
use op::{Gradient, Slices};
use tensor::{DType, Tensor};

/// The sum of gradients; none if there are none. The sum of slices has the rows of all of them: equal indices are
/// summed when the gradient is applied or densified.
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
        return Some(Gradient::Sparse(concatenated(scope, &slices)));
    }
    let terms: Vec<_> = gradients.iter().map(|gradient| densify(gradient).seen_from(scope)).collect();
    Some(Gradient::Dense(scope.op(ADD_N).inputs(&terms).output()))
}

fn concatenated(scope: &Scope, slices: &[&Slices]) -> Slices {
    let wide = slices.iter().any(|slices| slices.indices.dtype() == DType::I64);
    let indices: Vec<_> = slices
        .iter()
        .map(|slices| match wide && slices.indices.dtype() != DType::I64 {
            true => scope.op(CAST).input(&slices.indices).attr("DstT", DType::I64).output(),
            false => slices.indices.clone(),
        })
        .collect();
    let axis = constant(scope, Tensor::scalar(0i32));
    let values = slices.iter().map(|slices| &slices.values);
    Slices {
        indices: scope.op(CONCAT_V2).named("concat").inputs(&indices).input(&axis).output(),
        values: scope.op(CONCAT_V2).named("concat").inputs(values).input(&axis).output(),
        shape: slices.iter().find_map(|slices| slices.shape.clone()),
    }
}

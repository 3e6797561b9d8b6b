//! Layers that only change shapes.

use crate::TensorOps;
use graph::Output;

/// Joins all dimensions but the first, so that each example is one row.
pub fn flatten(x: &Output) -> Output {
    let width = x.shape().dims().and_then(|dims| dims.get(1..)?.iter().try_fold(1i64, |n, &d| (d >= 0).then(|| n * d)));
    match (width, x.shape().dim(0)) {
        (Some(width), _) => x.reshape(&[-1, width]),
        (None, Some(batch)) => x.reshape(&[batch as i64, -1]),
        (None, None) => {
            let error =
                status::invalid!("Flatten needs all dimensions but the first, or the first, found {}", x.shape());
            x.scope().graph().fail(error);
            x.clone()
        }
    }
}

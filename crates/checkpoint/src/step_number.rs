//! Step counters as integers.

use status::Result;
use tensor::Tensor;

/// The value of a step counter, which may be an `int64` or an `int32`.
pub fn step_number(tensor: &Tensor) -> Result<i64> {
    tensor.to_scalar::<i64>().or_else(|_| tensor.to_scalar::<i32>().map(i64::from))
}

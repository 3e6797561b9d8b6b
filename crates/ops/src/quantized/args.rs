//! Reads the arguments of quantized ops: ranges as pairs of scalars, values by type.

use super::level::{Level, Range};
use op::{Inputs, Outputs, ShapeQuery, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

/// A scalar; the message of the error is the one that most kernels of TensorFlow have.
pub(crate) fn scalar(inputs: &Inputs, index: usize, name: &str) -> Result<f32> {
    let tensor = inputs.look(index)?;
    match tensor.shape().rank() {
        0 => tensor.to_scalar(),
        rank => Err(invalid!("`{name}` must be rank 0 but is rank {rank}")),
    }
}

/// A range in two scalars, of which `index` is the first.
pub(crate) fn range(inputs: &Inputs, index: usize, names: [&str; 2]) -> Result<Range> {
    Ok(Range { min: scalar(inputs, index, names[0])?, max: scalar(inputs, index + 1, names[1])? })
}

/// A number in a tensor of any shape with one element.
pub(crate) fn single(inputs: &Inputs, index: usize, error: impl FnOnce(&Shape) -> status::Error) -> Result<f32> {
    let tensor = inputs.look(index)?;
    match *tensor.values::<f32>()? {
        [value] => Ok(value),
        _ => Err(error(tensor.shape())),
    }
}

/// A tensor with its range.
pub(crate) fn with_range(tensor: Tensor, range: Range) -> Outputs {
    outputs![tensor, Tensor::scalar(range.min), Tensor::scalar(range.max)]
}

/// Applies a function to every element.
pub(crate) fn mapped<T: Level, U: Level>(input: &Tensor, dtype: DType, f: impl Fn(T) -> U) -> Result<Tensor> {
    let mut out = Tensor::scratch_of(dtype, input.shape())?;
    for (out, &value) in out.values_mut::<U>()?.iter_mut().zip(input.values::<T>()?) {
        *out = f(value);
    }
    Ok(out)
}

/// The static shapes of a tensor and its range.
pub(crate) fn ranged(shape: PartialShape) -> Vec<PartialShape> {
    vec![shape, PartialShape::scalar(), PartialShape::scalar()]
}

/// The first output has the shape of the first input; the others are its range.
pub(crate) fn unchanged_with_range(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(ranged(query.inputs[0].clone()))
}

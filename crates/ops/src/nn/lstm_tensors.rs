//! Checks tensors of recurrent cells and reads them as plain floats.

use super::lstm::{Cell, Step, Weights};
use op::{Inputs, Outputs};
use status::{Result, invalid};
use tensor::{DType, Shape, Tensor, f16};

/// The numbers of a float or half tensor.
pub(super) fn floats(tensor: &Tensor) -> Result<Vec<f32>> {
    match tensor.dtype() {
        DType::F16 => Ok(tensor.values::<f16>()?.iter().map(|x| x.to_f32()).collect()),
        _ => Ok(tensor.values::<f32>()?.to_vec()),
    }
}

/// A float or half tensor of these numbers.
pub(super) fn tensor(dtype: DType, shape: &Shape, values: &[f32]) -> Result<Tensor> {
    match dtype {
        DType::F16 => Tensor::from_slice(shape, &values.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>()),
        _ => Tensor::from_slice(shape, values),
    }
}

/// The numbers of an input that must have these dimensions.
pub(super) fn input(inputs: &mut Inputs, index: usize, name: &str, dims: &[usize]) -> Result<Vec<f32>> {
    let found = inputs.tensor(index)?;
    if found.shape().rank() != dims.len() {
        return Err(invalid!("{name} must be rank {} but is rank {}", dims.len(), found.shape().rank()));
    }
    if found.shape().dims() != dims {
        return Err(invalid!("{name} must have shape {} but has shape {}", Shape::new(dims), found.shape()));
    }
    floats(&found)
}

/// The sizes of a cell, from its input and the state it had.
pub(super) fn cell(x: &[usize], cs_prev: &Tensor, forget_first: bool) -> Result<Cell> {
    let &[batch, inputs] = x else { return Err(invalid!("x must be 2D")) };
    let &[found, cells] = cs_prev.shape().dims() else { return Err(invalid!("cs_prev must be 2D")) };
    if found != batch {
        return Err(invalid!("cs_prev.dims(0) != batch_size: {found} vs. {batch}"));
    }
    let depth = inputs.checked_add(cells);
    if cells == 0 || depth.and_then(|depth| depth.checked_mul(4)?.checked_mul(cells)).is_none() {
        return Err(invalid!("cs_prev_tensor is empty, has shape: ({found},{cells})."));
    }
    Ok(Cell { batch, inputs, cells, forget_first })
}

/// Reads the weights of a cell, three peepholes and the bias, from input `first` on.
pub(super) fn weights(inputs: &mut Inputs, first: usize, cell: &Cell, use_peephole: bool) -> Result<Weights> {
    let w = inputs.tensor(first)?;
    let &[rows, cols] = w.shape().dims() else { return Err(invalid!("w must be 2D")) };
    if rows != cell.inputs + cell.cells {
        return Err(invalid!("w.dim_size(0) != input_size + cell_size: {rows} vs. {}", cell.inputs + cell.cells));
    }
    if cols != cell.cells * 4 {
        return Err(invalid!("w.dim_size(1) != cell_size * 4: {cols} vs. {}", cell.cells * 4));
    }
    let mut peepholes = Vec::new();
    for (i, name) in ["wci", "wcf", "wco"].into_iter().enumerate() {
        peepholes.push(input(inputs, first + 1 + i, name, &[cell.cells])?);
    }
    let bias = input(inputs, first + 4, "b", &[cell.cells * 4])?;
    let peepholes: Option<[Vec<f32>; 3]> = if use_peephole { peepholes.try_into().ok() } else { None };
    Ok(Weights { w: floats(&w)?, bias, peepholes })
}

/// Reads the results of a step from input `first` on, without its output.
pub(super) fn step(inputs: &mut Inputs, first: usize, dims: &[usize]) -> Result<Step> {
    let mut next = |offset: usize, name: &str| input(inputs, first + offset, name, dims);
    let (i, cs, f) = (next(0, "i")?, next(1, "cs")?, next(2, "f")?);
    let (o, ci, co) = (next(3, "o")?, next(4, "ci")?, next(5, "co")?);
    Ok(Step { i, cs, f, o, ci, co, h: Vec::new() })
}

/// The outputs of a forward op.
pub(super) fn step_outputs(dtype: DType, shape: &Shape, step: &Step) -> Result<Outputs> {
    let Step { i, cs, f, o, ci, co, h } = step;
    [i, cs, f, o, ci, co, h].into_iter().map(|values| Ok(tensor(dtype, shape, values)?.into())).collect()
}

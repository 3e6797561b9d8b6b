//! QuantizedReshape.

use super::args::{ranged, with_range};
use super::level::Range;
use crate::array::reshape::{reshape_shape, reshaped};
use graph::ShapeQuery;
use op::{Grad, Inputs, Kernel, Op, PLAIN, Setup, many};
use status::{Result, invalid};
use tensor::{DType, PartialShape};

pub(crate) const OPS: &[Op] = &[Op {
    def: "QuantizedReshape(tensor: T, shape: Tshape, input_min: float, input_max: float) -> output: T, \
          output_min: float, output_max: float; T: type; Tshape: {int32, int64} = int32",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(ranged(reshape_shape(query)?.swap_remove(0)))
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if !matches!(setup.dtype("T")?, DType::QU8 | DType::QI32) {
        return Err(setup.no_kernel());
    }
    Ok(many(|_, mut inputs| {
        let output = reshaped(inputs.tensor(0)?, &inputs.tensor(1)?)?;
        let range = Range { min: bound(&inputs, 2, "input_min")?, max: bound(&inputs, 3, "input_max")? };
        Ok(with_range(output, range))
    })
    .free())
}

fn bound(inputs: &Inputs, index: usize, name: &str) -> Result<f32> {
    let tensor = inputs.look(index)?;
    match (tensor.shape().rank(), tensor.values::<f32>()?) {
        (0 | 1, &[value]) => Ok(value),
        _ => Err(invalid!("{name} must be a scalar or a vector of 1 element")),
    }
}

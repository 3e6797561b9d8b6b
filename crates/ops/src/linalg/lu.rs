//! Lu: triangular factors and the permutation of rows.

use super::batch::{Matrices, Number, cubic, gathered, map, matrix_dims};
use crate::array::index::from_places;
use graph::Output;
use math::linalg;
use op::{Ctx, Grad, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "Lu(input: T) -> lu: T, p: output_idx_type; T: {double, float, half, complex64, complex128}; \
          output_idx_type: {int32, int64} = int32",
    shape: lu_shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

/// Both triangles of `l u = p input` in one matrix, and the rows of the input in the order `p` brings them into.
pub fn lu(input: &Output) -> (Output, Output) {
    let node = input.scope().op("Lu").input(input).node();
    (node.output(0), node.output(1))
}

fn lu_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some((batch, rows, cols)) = matrix_dims(&query.inputs[0])? else { return Ok(vec![PartialShape::unknown(); 2]) };
    let size = rows.max(cols);
    Ok(vec![PartialShape::new(&[batch, &[size, size]].concat()), PartialShape::new(&[batch, &[size]].concat())])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let index_type = setup.dtype("output_idx_type")?;
    for_matrices!(setup, setup.dtype("T")?, T => move |ctx: &Ctx<'_>, inputs: &[Tensor]| run::<T>(ctx, inputs, index_type))
}

fn run<T: Number>(ctx: &Ctx<'_>, inputs: &[Tensor], index_type: DType) -> Result<Outputs> {
    if inputs[0].shape().rank() < 2 {
        return Err(invalid!("Input tensor must have rank >= 2, got {}", inputs[0].shape().rank()));
    }
    let a = Matrices::<T>::square(&inputs[0])?;
    let n = a.rows;
    let results = map(ctx, a.count(), cubic(n, n) / 3.0, |number| {
        let lu = linalg::lu(ctx.pool(), a.get(number), n);
        match lu.invertible() {
            true => Ok((lu.factors, lu.rows)),
            false => Err(invalid!("Input is not invertible.")),
        }
    })?;
    let (factors, rows): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let order = from_places(&rows.concat(), a.shape(&[n])?, index_type)?;
    Ok(outputs![gathered(a.shape(&[n, n])?, factors)?, order])
}

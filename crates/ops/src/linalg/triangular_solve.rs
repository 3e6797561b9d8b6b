//! MatrixTriangularSolve: equations with triangular matrices, whose batches may be broadcast.

use super::batch::{Matrices, Number, cubic, gathered, map, matrix_dims};
use super::nodes::{product, sum_to_batch};
use crate::array::index::shape_of;
use crate::array::matrix_band_part::matrix_band_part;
use graph::{Node, Output};
use math::linalg;
use op::shapes::broadcast_shapes;
use op::{Ctx, Grad, Grads, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MatrixTriangularSolve(matrix: T, rhs: T) -> output: T; lower: bool = true; adjoint: bool = false; \
              T: {bfloat16, double, float, half, complex64, complex128}",
        shape: solve_shape,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "BatchMatrixTriangularSolve(matrix: T, rhs: T) -> output: T; lower: bool = true; adjoint: bool = false; \
              T: {double, float}",
        shape: solve_shape,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN.removed_in(13, "Use MatrixTriangularSolve instead."),
    },
];

/// The `x` with `matrix x = rhs`, of which only one triangle counts; or with its adjoint.
pub fn triangular_solve(matrix: &Output, rhs: &Output, lower: bool, adjoint: bool) -> Output {
    let builder = matrix.scope().op("MatrixTriangularSolve").input(matrix).input(rhs);
    builder.attr("lower", lower).attr("adjoint", adjoint).output()
}

fn solve_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let (Some((left, rows, _)), Some((right, _, width))) =
        (matrix_dims(&query.inputs[0])?, matrix_dims(&query.inputs[1])?)
    else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let batch = broadcast_shapes(&PartialShape::new(left), &PartialShape::new(right))?;
    Ok(vec![PartialShape::new(&[batch.dims().unwrap_or_default(), &[rows, width]].concat())])
}

/// With a x = b:  db = a^-' dx  and  da = -db x', of which only the triangle counts.
fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [a, b] = op.inputs()?;
    let (x, lower, adjoint) = (op.output(0), op.attr_bool("lower")?, op.attr_bool("adjoint")?);
    let db = triangular_solve(&a, dy, lower, !adjoint);
    let da = -if adjoint { product(&x, &db, false, true) } else { product(&db, &x, false, true) };
    let da = if lower { matrix_band_part(&da, -1, 0) } else { matrix_band_part(&da, 0, -1) };
    let batch = |x: &Output| x.shape().known().map(|shape| shape[..shape.rank().saturating_sub(2)].to_vec());
    if batch(&a).is_some() && batch(&a) == batch(&b) {
        return Ok(grads![da, db]);
    }
    Ok(grads![sum_to_batch(&da, &a, &b), sum_to_batch(&db, &b, &a)])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (lower, adjoint) = (setup.bool("lower")?, setup.bool("adjoint")?);
    for_matrices!(setup, setup.dtype("T")?, T => move |ctx: &Ctx<'_>, inputs: &[Tensor]| run::<T>(ctx, inputs, lower, adjoint))
}

fn run<T: Number>(ctx: &Ctx<'_>, inputs: &[Tensor], lower: bool, adjoint: bool) -> Result<Outputs> {
    let (a, b) = checked::<T>(inputs, lower, adjoint)?;
    let n = a.rows;
    let (batch, places) = repeated(a.batch, b.batch).ok_or_else(|| {
        let (left, right) = (inputs[0].shape(), inputs[1].shape());
        invalid!("In[0] and In[1] must have compatible batch dimensions: {left} vs. {right}")
    })?;
    let cost = (n * n * b.cols) as f64 / 2.0 + 200.0;
    let results = map(ctx, places.len(), cost.max(cubic(1, 1)), |number| {
        let (left, right) = places[number];
        let mut x = b.get(right).to_vec();
        solve(ctx, a.get(left), n, (lower, adjoint), &mut x, b.cols);
        Ok(x)
    })?;
    Ok(outputs![gathered(shape_of(&[&batch, &[n, b.cols]])?, results)?])
}

fn checked<'a, T: Number>(
    inputs: &'a [Tensor],
    lower: bool,
    adjoint: bool,
) -> Result<(Matrices<'a, T>, Matrices<'a, T>)> {
    for (number, input) in inputs.iter().enumerate() {
        if input.shape().rank() < 2 {
            return Err(invalid!("In[{number}] ndims must be >= 2: {}", input.shape().rank()));
        }
    }
    let (a, b) = (Matrices::of(&inputs[0], 0)?, Matrices::of(&inputs[1], 1)?);
    if a.rows != a.cols {
        return Err(invalid!("In[0] matrices in the last dimensions must be square ({} =/= {})", a.cols, a.rows));
    }
    if a.cols != b.rows {
        return Err(invalid!(
            "In[0] mismatch In[1] shape: {} vs. {}: {} {} {} {}",
            a.cols,
            b.rows,
            inputs[0].shape(),
            inputs[1].shape(),
            i32::from(lower),
            i32::from(adjoint)
        ));
    }
    Ok((a, b))
}

fn solve<T: Number>(ctx: &Ctx<'_>, a: &[T], n: usize, (lower, adjoint): (bool, bool), x: &mut [T], cols: usize) {
    match (lower, adjoint) {
        (true, false) => linalg::solve_lower(ctx.pool(), a, n, false, x, cols),
        (false, false) => linalg::solve_upper(ctx.pool(), a, n, x, cols),
        (true, true) => linalg::solve_upper(ctx.pool(), &linalg::adjoint(a, n, n), n, x, cols),
        (false, true) => linalg::solve_lower(ctx.pool(), &linalg::adjoint(a, n, n), n, false, x, cols),
    }
}

/// A broadcast batch, and for each of its members the index in either of the two batches.
pub(super) type Joined = (Vec<usize>, Vec<(usize, usize)>);

/// The batch two batches make together.
pub(super) fn repeated(left: &[usize], right: &[usize]) -> Option<Joined> {
    let rank = left.len().max(right.len());
    let at = |dims: &[usize], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |place| dims[place]);
    let mut batch = Vec::with_capacity(rank);
    for axis in 0..rank {
        batch.push(match (at(left, axis), at(right, axis)) {
            (a, b) if a == b || b == 1 => a,
            (1, b) => b,
            _ => return None,
        });
    }
    let place = |dims: &[usize], number: usize| {
        let (mut rest, mut place, mut stride) = (number, 0, 1);
        for axis in (0..rank).rev() {
            let (index, dim) = (rest % batch[axis], at(dims, axis));
            rest /= batch[axis];
            place += if dim == 1 { 0 } else { index * stride };
            stride *= dim;
        }
        place
    };
    let count = Shape::new(&batch).checked_elements().ok()?;
    let places = (0..count).map(|number| (place(left, number), place(right, number))).collect();
    Some((batch, places))
}

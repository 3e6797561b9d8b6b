//! SparseTensorDenseMatMul: a sparse matrix times a dense one.

use crate::array::gather::{gather, gather_along};
use crate::array::nodes;
use crate::array::numbers::Summed;
use graph::{Node, Output};
use math::rows;
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{Complex32, Complex64, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SparseTensorDenseMatMul(a_indices: Tindices, a_values: T, a_shape: int64, b: T) -> product: T; T: type; \
          Tindices: {int32, int64} = int64; adjoint_a: bool = false; adjoint_b: bool = false",
    shape: product_shape,
    grad: Grad::Rule(rule),
    kernel,
    facts: PLAIN,
}];

/// A sparse matrix, given as indices, values and shape, times `b`; either may be adjoint.
pub fn sparse_dense_matmul(a: [&Output; 3], b: &Output, adjoint_a: bool, adjoint_b: bool) -> Output {
    let builder = b.scope().op("SparseTensorDenseMatMul").input(a[0]).input(a[1]).input(a[2]).input(b);
    builder.attr("adjoint_a", adjoint_a).attr("adjoint_b", adjoint_b).output()
}

fn product_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let flag = |name: &str| matches!(query.attr(name), Ok(graph::AttrValue::Bool(true)));
    let b = query.inputs[3].merge(&PartialShape::of_rank(2))?;
    let a = query.constants[2].as_ref().and_then(|shape| shape.values::<i64>().ok()).unwrap_or(&[-1, -1]);
    let rows = a.get(usize::from(flag("adjoint_a"))).copied().unwrap_or(-1);
    let cols = b.dims().map_or(-1, |dims| dims[usize::from(!flag("adjoint_b"))]);
    Ok(vec![PartialShape::new(&[rows, cols])])
}

/// With C = A B:  dB = A' dC, and of dA = dC B' only the places that A has.
fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [indices, values, shape, b] = op.inputs()?;
    let (adjoint_a, adjoint_b) = (op.attr_bool("adjoint_a")?, op.attr_bool("adjoint_b")?);
    let complex = dy.dtype().is_complex();
    let conjugate = |x: &Output| if complex { nodes::one("Conj", x) } else { x.clone() };
    let db = sparse_dense_matmul([&indices, &values, &shape], dy, !adjoint_a, false);
    let db = if adjoint_b { conjugate(&nodes::transpose(&db, &[1, 0])) } else { db };
    let column = |number: i32| gather_along(&indices, &nodes::int(indices.scope(), number), 1, 0);
    let (rows, cols) = if adjoint_a { (column(1), column(0)) } else { (column(0), column(1)) };
    let factors = match adjoint_b {
        true => gather(&nodes::transpose(&b, &[1, 0]), &cols),
        false => conjugate(&gather(&b, &cols)),
    };
    let da = nodes::sum(&(gather(dy, &rows) * factors), &nodes::ints(dy.scope(), &[1]), false);
    let da = if adjoint_a { conjugate(&da) } else { da };
    Ok(grads![NoGradient, da, NoGradient, db])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (adjoint_a, adjoint_b) = (setup.bool("adjoint_a")?, setup.bool("adjoint_b")?);
    let kernel = for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => {
        Ok(many(move |ctx, inputs| run::<T>(ctx, inputs, adjoint_a, adjoint_b)))
    });
    Ok(kernel?.heavy())
}

fn run<T: Summed>(ctx: &Ctx<'_>, mut inputs: Inputs, adjoint_a: bool, adjoint_b: bool) -> Result<Outputs> {
    let (indices, values, shape, b) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?, inputs.tensor(3)?);
    let shape = check(&indices, &values, &shape, &b)?;
    let (rows, inner) = if adjoint_a { (shape[1], shape[0]) } else { (shape[0], shape[1]) };
    let (b_rows, b_cols) = (b.shape()[0], b.shape()[1]);
    let (depth, width) = if adjoint_b { (b_cols, b_rows) } else { (b_rows, b_cols) };
    if inner != depth as i64 {
        return Err(invalid!(
            "Cannot multiply A and B because inner dimension does not match: {inner} vs. {depth}.  \
             Did you forget a transpose?  Dimensions of A: [{}, {}).  Dimensions of B: {}",
            shape[0],
            shape[1],
            b.shape()
        ));
    }
    let product = Shape::checked(&[rows, width as i64])?;
    let mut sums = Tensor::zeros::<T>(product)?;
    if sums.elements() > 0 {
        let (targets, sources) = checked_places(&indices, adjoint_a, rows as usize, depth)?;
        let adjoint = adjoint_b.then(|| adjoint::<T>(b.values::<T>().unwrap_or_default(), b_rows, b_cols));
        let table = match &adjoint {
            Some(adjoint) => adjoint,
            None => b.values::<T>()?,
        };
        let factors = values.values::<T>()?;
        let cost = 4.0 + width as f32 * 0.3;
        rows::combine(ctx.pool(), cost, sums.values_mut::<T>()?, width, &targets, |row, i| {
            let factor = if adjoint_a { factors[i].conjugate() } else { factors[i] };
            for (sum, &value) in row.iter_mut().zip(&table[sources[i] * width..][..width]) {
                *sum = sum.add(value.mul(factor));
            }
        });
    }
    Ok(outputs![sums])
}

fn check(indices: &Tensor, values: &Tensor, shape: &Tensor, b: &Tensor) -> Result<[i64; 2]> {
    if b.shape().rank() != 2 {
        return Err(invalid!("Tensor 'b' is not a matrix"));
    }
    if shape.shape().rank() != 1 {
        return Err(invalid!("Tensor 'a_shape' is not a vector"));
    }
    let &[rows, cols] = shape.values::<i64>()? else {
        return Err(invalid!("Tensor 'a_shape' must have 2 elements"));
    };
    if values.shape().rank() != 1 {
        return Err(invalid!("Tensor 'a_values' is not a vector"));
    }
    if indices.shape().rank() != 2 {
        return Err(invalid!("Tensor 'a_indices' is not a matrix"));
    }
    if indices.shape()[0] != values.elements() {
        return Err(invalid!("Number of rows of a_indices does not match number of entries in a_values"));
    }
    if indices.shape()[1] != 2 {
        return Err(invalid!("Number of columns of a_indices does not match number of entries in a_shape"));
    }
    Ok([rows, cols])
}

/// Rows of the product and rows of the dense matrix that each value joins.
fn checked_places(indices: &Tensor, adjoint: bool, rows: usize, depth: usize) -> Result<(Vec<usize>, Vec<usize>)> {
    let all = op::shapes::integers(indices)?;
    let (left, right) = if adjoint { (1, 0) } else { (0, 1) };
    let mut places = (Vec::with_capacity(all.len() / 2), Vec::with_capacity(all.len() / 2));
    for (i, pair) in all.chunks_exact(2).enumerate() {
        let below = |at: i64, limit: usize| usize::try_from(at).ok().filter(|&at| at < limit);
        let (m, k) = (pair[left], pair[right]);
        let source = below(k, depth);
        let source = source.ok_or_else(|| invalid!("k ({k}) from index[{i},{right}] out of bounds (>={depth})"))?;
        let target = below(m, rows);
        let target = target.ok_or_else(|| invalid!("m ({m}) from index[{i},{left}] out of bounds (>={rows})"))?;
        places.0.push(target);
        places.1.push(source);
    }
    Ok(places)
}

fn adjoint<T: Summed>(values: &[T], rows: usize, cols: usize) -> Vec<T> {
    (0..cols).flat_map(|col| (0..rows).map(move |row| values[row * cols + col].conjugate())).collect()
}

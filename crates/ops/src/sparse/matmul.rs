//! SparseMatMul: a matrix product with hints about which factor is sparse. It ignores the hints, because the dense
//! product is faster.

use crate::array::nodes;
use graph::{Node, Output};
use math::gemm::{Matrix, matmul};
use op::{Ctx, Grad, Grads, Kernel, Op, PLAIN, Setup, ShapeQuery, binary, grads};
use status::{Result, invalid};
use std::borrow::Cow;
use tensor::{DType, PartialShape, Tensor, bf16};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SparseMatMul(a: Ta, b: Tb) -> product: float; transpose_a: bool = false; transpose_b: bool = false; \
          a_is_sparse: bool = false; b_is_sparse: bool = false; Ta: {float, bfloat16} = float; \
          Tb: {float, bfloat16} = float",
    shape: product_shape,
    grad: Grad::Rule(rule),
    kernel,
    facts: PLAIN,
}];

/// The product of two matrices of float or bfloat16, in float.
pub fn sparse_matmul(a: &Output, b: &Output, transpose_a: bool, transpose_b: bool) -> Output {
    let builder = a.scope().op("SparseMatMul").input(a).input(b);
    builder.attr("transpose_a", transpose_a).attr("transpose_b", transpose_b).output()
}

fn product_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let flag = |name: &str| matches!(query.attr(name), Ok(graph::AttrValue::Bool(true)));
    let matrix = PartialShape::of_rank(2);
    let (a, b) = (query.inputs[0].merge(&matrix)?, query.inputs[1].merge(&matrix)?);
    let dim = |shape: &PartialShape, axis: usize| shape.dims().map_or(-1, |dims| dims[axis]);
    let (ta, tb) = (usize::from(flag("transpose_a")), usize::from(flag("transpose_b")));
    let (left, right) = (dim(&a, 1 - ta), dim(&b, tb));
    if left >= 0 && right >= 0 && left != right {
        return Err(invalid!("Dimensions must be equal, but are {left} and {right}"));
    }
    Ok(vec![PartialShape::new(&[dim(&a, ta), dim(&b, 1 - tb)])])
}

/// With C = A B:  dA = dC B'  and  dB = A' dC, whichever of them are transposed.
fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [a, b] = op.inputs()?;
    let (da, db) = match (op.attr_bool("transpose_a")?, op.attr_bool("transpose_b")?) {
        (false, false) => (sparse_matmul(dy, &b, false, true), sparse_matmul(&a, dy, true, false)),
        (false, true) => (sparse_matmul(dy, &b, false, false), sparse_matmul(dy, &a, true, false)),
        (true, false) => (sparse_matmul(&b, dy, false, true), sparse_matmul(&a, dy, false, false)),
        (true, true) => (sparse_matmul(&b, dy, true, true), sparse_matmul(dy, &a, true, true)),
    };
    Ok(grads![nodes::cast(&da, a.dtype()), nodes::cast(&db, b.dtype())])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (transpose_a, transpose_b) = (setup.bool("transpose_a")?, setup.bool("transpose_b")?);
    Ok(binary(move |ctx, a, b| run(ctx, &a, &b, transpose_a, transpose_b)).heavy())
}

fn run(ctx: &Ctx<'_>, a: &Tensor, b: &Tensor, transpose_a: bool, transpose_b: bool) -> Result<Tensor> {
    let (left, right) = (widened(a)?, widened(b)?);
    let oriented = |values, tensor: &Tensor, transpose: bool, name: &str| match *tensor.shape().dims() {
        [rows, cols] => {
            let matrix = Matrix::new(values, rows, cols);
            Ok(if transpose { matrix.transposed() } else { matrix })
        }
        _ => Err(invalid!("{name} is not a matrix")),
    };
    let lhs = oriented(&left[..], a, transpose_a, "a")?;
    let rhs = oriented(&right[..], b, transpose_b, "b")?;
    if lhs.cols != rhs.rows {
        return Err(invalid!("Matrix size incompatible: a: {}, b: {}", a.shape(), b.shape()));
    }
    let mut product = Tensor::zeros::<f32>([lhs.rows, rhs.cols])?;
    matmul(ctx.pool(), lhs, rhs, product.values_mut::<f32>()?);
    Ok(product)
}

fn widened(tensor: &Tensor) -> Result<Cow<'_, [f32]>> {
    match tensor.dtype() {
        DType::F32 => Ok(Cow::Borrowed(tensor.values::<f32>()?)),
        _ => Ok(tensor.values::<bf16>()?.iter().map(|value| value.to_f32()).collect()),
    }
}

//! The product of two matrices.

use super::complex::conj;
use graph::{Node, Output};
use math::gemm::{self, Matrix};
use op::{Ctx, Grad, Grads, Kernel, Op, PLAIN, Setup, ShapeQuery, binary, grads};
use status::{Result, invalid};
use tensor::{Complex32, Complex64, Element, PartialShape, Shape, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[Op {
    def: "MatMul(a: T, b: T) -> product: T; transpose_a: bool = false; transpose_b: bool = false; T: {bfloat16, half, \
          float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}; grad_a: bool = false; \
          grad_b: bool = false",
    shape: matmul_shape,
    grad: Grad::Rule(matmul_rule),
    kernel: matmul_kernel,
    facts: PLAIN.product("_FusedMatMul", None),
}];

/// The product of two matrices.
pub fn matmul(a: &Output, b: &Output) -> Output {
    matmul_with(a, b, false, false)
}

/// The product of two matrices, each transposed first if so said.
pub fn matmul_with(a: &Output, b: &Output, transpose_a: bool, transpose_b: bool) -> Output {
    let node = a.scope().op("MatMul").input(a).input(b);
    node.attr("transpose_a", transpose_a).attr("transpose_b", transpose_b).output()
}

pub(super) fn matmul_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let flag = |name| Ok::<bool, status::Error>(matches!(query.attr(name)?, graph::AttrValue::Bool(true)));
    let (rows, a_inner) = sides(&query.inputs[0], flag("transpose_a")?)?;
    let (b_inner, cols) = sides(&query.inputs[1], flag("transpose_b")?)?;
    if a_inner >= 0 && b_inner >= 0 && a_inner != b_inner {
        return Err(invalid!("Dimensions must be equal, but are {a_inner} and {b_inner}"));
    }
    Ok(vec![PartialShape::new(&[rows, cols])])
}

/// Rows and columns of a matrix, as far as they are known.
fn sides(shape: &PartialShape, transposed: bool) -> Result<(i64, i64)> {
    match shape.dims() {
        None => Ok((-1, -1)),
        Some(&[rows, cols]) => Ok(if transposed { (cols, rows) } else { (rows, cols) }),
        Some(dims) => Err(invalid!("Shape must be rank 2 but is rank {}", dims.len())),
    }
}

fn matmul_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (transpose_a, transpose_b) = (setup.bool("transpose_a")?, setup.bool("transpose_b")?);
    for_core!(setup, [f32, f64, f16, bf16, i32, i64, Complex32, Complex64], T => {
        Ok(binary(move |ctx, a, b| run_matmul::<T>(ctx, transpose_a, transpose_b, &a, &b)))
    })
}

fn run_matmul<T: Element + gemm::Element>(
    ctx: &Ctx<'_>,
    transpose_a: bool,
    transpose_b: bool,
    a: &Tensor,
    b: &Tensor,
) -> Result<Tensor> {
    let (lhs, rhs) = operands::<T>(transpose_a, transpose_b, a, b)?;
    let shape = product_shape(lhs.rows, rhs.cols)?;
    if lhs.cols == 0 {
        return Tensor::zeros::<T>(shape);
    }
    let mut product = Tensor::scratch::<T>(shape)?;
    gemm::matmul(ctx.pool(), lhs, rhs, product.values_mut()?);
    Ok(product)
}

/// The matrices of a product, checked against each other.
pub(super) fn operands<'a, T: Element>(
    transpose_a: bool,
    transpose_b: bool,
    a: &'a Tensor,
    b: &'a Tensor,
) -> Result<(Matrix<'a, T>, Matrix<'a, T>)> {
    let (x, y) = (a.shape(), b.shape());
    if x.rank() != y.rank() {
        return Err(invalid!("In[0] and In[1] has different ndims: {x} vs. {y}"));
    }
    if x.rank() != 2 {
        return Err(invalid!("In[0] and In[1] ndims must be == 2: {}", x.rank()));
    }
    let (lhs, rhs) = (oriented(a, transpose_a)?, oriented(b, transpose_b)?);
    match lhs.cols == rhs.rows {
        true => Ok((lhs, rhs)),
        false => Err(invalid!("Matrix size-incompatible: In[0]: {x}, In[1]: {y}")),
    }
}

fn oriented<T: Element>(matrix: &Tensor, transposed: bool) -> Result<Matrix<'_, T>> {
    let (values, shape) = (matrix.values::<T>()?, matrix.shape());
    let matrix = Matrix::new(values, shape[0], shape[1]);
    Ok(if transposed { matrix.transposed() } else { matrix })
}

/// The shape of a product; two matrices without elements may have one that is too large.
pub(super) fn product_shape(rows: usize, cols: usize) -> Result<Shape> {
    let shape = Shape::new(&[rows, cols]);
    shape.checked_elements()?;
    Ok(shape)
}

/// With z = a b:  da = dz bᵀ  and  db = aᵀ dz, and likewise for matrices that were transposed.
fn matmul_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let (a, b) = (conj(&op.input(0)), conj(&op.input(1)));
    let (da, db) = match (op.attr_bool("transpose_a")?, op.attr_bool("transpose_b")?) {
        (false, false) => (matmul_with(dz, &b, false, true), matmul_with(&a, dz, true, false)),
        (false, true) => (matmul_with(dz, &b, false, false), matmul_with(dz, &a, true, false)),
        (true, false) => (matmul_with(&b, dz, false, true), matmul_with(&a, dz, false, false)),
        (true, true) => (matmul_with(&b, dz, true, true), matmul_with(dz, &a, true, true)),
    };
    Ok(grads![da, db])
}

//! Products of batches of matrices.

use super::broadcast_grad::{constant, reshaped, shape_of};
use super::cast::converter;
use super::complex::Conjugate;
use super::kernels::{broadcast_shape, run_map};
use super::strings::places;
use graph::{Node, Output};
use math::gemm::{self, Matrix};
use math::lanes::Map;
use op::shapes::broadcast_shapes;
use op::{Ctx, Grad, Gradient, Grads, Kernel, Op, PLAIN, Setup, ShapeQuery, binary};
use status::{Result, invalid};
use tensor::{Complex32, Complex64, DType, Element, PartialShape, Shape, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "BatchMatMul(x: T, y: T) -> output: T; T: {bfloat16, half, float, double, int32, int64, complex64, \
              complex128}; adj_x: bool = false; adj_y: bool = false; grad_x: bool = false; grad_y: bool = false",
        shape: batch_matmul_shape,
        grad: Grad::Rule(batch_matmul_rule),
        kernel: |setup| batch_matmul_kernel(setup, check_alike),
        facts: PLAIN,
    },
    Op {
        def: "BatchMatMulV2(x: T, y: T) -> output: T; T: {bfloat16, half, float, double, int16, int32, int64, uint8, \
              uint16, uint32, uint64, complex64, complex128}; adj_x: bool = false; adj_y: bool = false; \
              grad_x: bool = false; grad_y: bool = false",
        shape: batch_matmul_shape,
        grad: Grad::Rule(batch_matmul_rule),
        kernel: |setup| batch_matmul_kernel(setup, check_broadcast),
        facts: PLAIN,
    },
    Op {
        def: "BatchMatMulV3(x: Ta, y: Tb) -> output: Tout; Ta: {bfloat16, half, float, double, uint8, int8, int16, \
              int32, int64, complex64, complex128}; Tb: {bfloat16, half, float, double, uint8, int8, int16, int32, \
              int64, complex64, complex128}; Tout: {bfloat16, half, float, double, int16, int32, int64, complex64, \
              complex128}; adj_x: bool = false; adj_y: bool = false; grad_x: bool = false; grad_y: bool = false",
        shape: batch_matmul_shape,
        grad: Grad::Rule(batch_matmul_rule),
        kernel: batch_matmul_v3_kernel,
        facts: PLAIN,
    },
];

/// Products of matrices on the last two axes; the other axes are broadcast.
pub fn batch_matmul(x: &Output, y: &Output) -> Output {
    adjoint_matmul(x, y, false, false)
}

/// As `batch_matmul`, of the adjoint matrices where so said.
pub fn adjoint_matmul(x: &Output, y: &Output, adj_x: bool, adj_y: bool) -> Output {
    x.scope().op("BatchMatMulV2").input(x).input(y).attr("adj_x", adj_x).attr("adj_y", adj_y).output()
}

fn batch_matmul_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let flag = |name| Ok::<bool, status::Error>(matches!(query.attr(name)?, graph::AttrValue::Bool(true)));
    let (adj_x, adj_y) = (flag("adj_x")?, flag("adj_y")?);
    let (Some(x), Some(y)) = (query.inputs[0].dims(), query.inputs[1].dims()) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    for dims in [x, y] {
        if dims.len() < 2 {
            return Err(invalid!("Shape must be at least rank 2 but is rank {}", dims.len()));
        }
    }
    let split = |dims: &[i64], adjoint: bool| {
        let (batch, &[rows, cols]) = dims.split_last_chunk::<2>().expect("at least two axes");
        let (rows, cols) = if adjoint { (cols, rows) } else { (rows, cols) };
        (PartialShape::new(batch), rows, cols)
    };
    let ((x_batch, rows, inner), (y_batch, y_inner, cols)) = (split(x, adj_x), split(y, adj_y));
    if inner >= 0 && y_inner >= 0 && inner != y_inner {
        return Err(invalid!("Dimensions must be equal, but are {inner} and {y_inner}"));
    }
    let batch = broadcast_shapes(&x_batch, &y_batch)?;
    let dims = batch.dims().map(|batch| [batch, &[rows, cols]].concat());
    Ok(vec![dims.map_or(PartialShape::unknown(), |dims| PartialShape::new(&dims))])
}

/// Checks the axes of two inputs.
type Check = fn(&Shape, &Shape) -> Result<()>;

/// The first version of the op does not broadcast.
fn check_alike(x: &Shape, y: &Shape) -> Result<()> {
    if x.rank() != y.rank() {
        return Err(invalid!("In[0] and In[1] has different ndims: {x} vs. {y}"));
    }
    if x.rank() < 2 {
        return Err(invalid!("In[0] and In[1] ndims must be >= 2: {}", x.rank()));
    }
    match (0..x.rank() - 2).find(|&axis| x[axis] != y[axis]) {
        None => Ok(()),
        Some(axis) => Err(invalid!("In[0].dim({axis}) and In[1].dim({axis}) must be the same: {x} vs {y}")),
    }
}

fn check_broadcast(x: &Shape, y: &Shape) -> Result<()> {
    for (index, shape) in [x, y].into_iter().enumerate() {
        if shape.rank() < 2 {
            return Err(invalid!("In[{index}] ndims must be >= 2: {}", shape.rank()));
        }
    }
    Ok(())
}

/// The transformation of both sides of each product.
#[derive(Clone, Copy)]
struct Adjoint {
    x: bool,
    y: bool,
}

impl Adjoint {
    fn of(setup: &Setup<'_>) -> Result<Adjoint> {
        Ok(Adjoint { x: setup.bool("adj_x")?, y: setup.bool("adj_y")? })
    }
}

fn batch_matmul_kernel(setup: &Setup<'_>, check: Check) -> Result<Kernel> {
    let adjoint = Adjoint::of(setup)?;
    for_core!(setup, [f32, f64, f16, bf16, i32, i64, Complex32, Complex64], T => {
        Ok(binary(move |ctx, x, y| run_batch_matmul::<T>(ctx, adjoint, check, x, y)))
    })
}

/// Both sides are made numbers of the result's type first.
fn batch_matmul_v3_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (adjoint, out) = (Adjoint::of(setup)?, setup.dtype("Tout")?);
    let (x, y) = (setup.dtype("Ta")?, setup.dtype("Tb")?);
    let is_one = x == out && y == out;
    if !is_one && !is_mixed(x, y, out) {
        return Err(setup.no_kernel());
    }
    let (x_in, y_in) = (converter(x, out)?, converter(y, out)?);
    for_types!(setup, out, [f32, f64, f16, bf16, i16, i32, i64, Complex32, Complex64], T => {
        Ok(binary(move |ctx, x, y| {
            run_batch_matmul::<T>(ctx, adjoint, check_broadcast, x_in(ctx, x)?, y_in(ctx, y)?)
        }))
    })
}

/// Whether TensorFlow multiplies numbers of these two types to a third.
fn is_mixed(x: DType, y: DType, out: DType) -> bool {
    let narrow = |dtype| matches!(dtype, DType::I8 | DType::U8);
    match out {
        DType::I32 => narrow(x) && narrow(y),
        DType::BF16 => (narrow(x) && y == out) || (x == out && narrow(y)),
        _ => false,
    }
}

fn run_batch_matmul<T: Element + gemm::Element>(
    ctx: &Ctx<'_>,
    adjoint: Adjoint,
    check: Check,
    x: Tensor,
    y: Tensor,
) -> Result<Tensor> {
    check(x.shape(), y.shape())?;
    let (x, y) = (conjugated(ctx, x, adjoint.x)?, conjugated(ctx, y, adjoint.y)?);
    let (lhs, rhs) = (first_matrix::<T>(&x, adjoint.x)?, first_matrix::<T>(&y, adjoint.y)?);
    let (x_batch, y_batch) = (batch_of(x.shape()), batch_of(y.shape()));
    let batch = broadcast_shape(&x_batch, &y_batch).map_err(|_| {
        let (x, y) = (x.shape(), y.shape());
        invalid!("In[0] and In[1] must have compatible batch dimensions: {x} vs. {y}")
    })?;
    if lhs.cols != rhs.rows {
        return Err(invalid!("Matrix size-incompatible: In[0]: {}, In[1]: {}", x.shape(), y.shape()));
    }
    let mut shape = batch.clone();
    shape.dims_mut().extend([lhs.rows, rhs.cols]);
    if shape.checked_elements()? == 0 || lhs.cols == 0 {
        return Tensor::zeros::<T>(shape);
    }
    let mut out = Tensor::scratch::<T>(shape)?;
    let (x_size, y_size) = (lhs.rows * lhs.cols, rhs.rows * rhs.cols);
    let starts = places(&x_batch, &batch).zip(places(&y_batch, &batch));
    let offsets: Vec<(usize, usize)> = starts.map(|(i, j)| (i * x_size, j * y_size)).collect();
    gemm::matmul_batch(ctx.pool(), lhs, rhs, &offsets, out.values_mut()?);
    Ok(out)
}

/// All axes but the last two.
fn batch_of(shape: &Shape) -> Shape {
    Shape::new(&shape[..shape.rank() - 2])
}

fn first_matrix<T: Element>(batch: &Tensor, transposed: bool) -> Result<Matrix<'_, T>> {
    let shape = batch.shape();
    let matrix = Matrix::new(batch.values::<T>()?, shape[shape.rank() - 2], shape[shape.rank() - 1]);
    Ok(if transposed { matrix.transposed() } else { matrix })
}

/// An adjoint matrix of complex numbers is the transpose of their conjugates.
fn conjugated(ctx: &Ctx<'_>, x: Tensor, adjoint: bool) -> Result<Tensor> {
    match x.dtype() {
        DType::C64 if adjoint => run_map(ctx, &Map::vector(<Complex32 as Conjugate>::conjugate), x),
        DType::C128 if adjoint => run_map(ctx, &Map::vector(<Complex64 as Conjugate>::conjugate), x),
        _ => Ok(x),
    }
}

/// With z = x y:  dx = dz y*  and  dy = x* dz, summed back over the axes that were broadcast.
fn batch_matmul_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    let (dx, dy) = match (op.attr_bool("adj_x")?, op.attr_bool("adj_y")?) {
        (false, false) => (adjoint_matmul(dz, &y, false, true), adjoint_matmul(&x, dz, true, false)),
        (false, true) => (adjoint_matmul(dz, &y, false, false), adjoint_matmul(dz, &x, true, false)),
        (true, false) => (adjoint_matmul(&y, dz, false, true), adjoint_matmul(&x, dz, false, false)),
        (true, true) => (adjoint_matmul(&y, dz, true, true), adjoint_matmul(dz, &x, true, true)),
    };
    let batch = |x: &Output| x.shape().known().filter(|shape| shape.rank() >= 2).map(|shape| batch_of(&shape));
    let is_alike = batch(&x).is_some() && batch(&x) == batch(&y);
    let (dx, dy) = if is_alike { (dx, dy) } else { summed_batches(&x, &y, dx, dy) };
    Ok(vec![Some(Gradient::Dense(dx)), Some(Gradient::Dense(dy))])
}

/// Gradients of batches summed to the batches of their operands.
fn summed_batches(x: &Output, y: &Output, dx: Output, dy: Output) -> (Output, Output) {
    let scope = x.scope();
    let number = |value: i32| constant(scope, Tensor::vector(&[value]));
    let (x_shape, y_shape) = (shape_of(x), shape_of(y));
    let batch = |shape: &Output| {
        let slice = scope.op("StridedSlice").input(shape).input(&number(0)).input(&number(-2)).input(&number(1));
        slice.attr("begin_mask", 1i64).output()
    };
    let axes = scope.op("BroadcastGradientArgs").input(&batch(&x_shape)).input(&batch(&y_shape)).node();
    let sum = |gradient: &Output, axes: Output| scope.op("Sum").input(gradient).input(&axes).output();
    (reshaped(&sum(&dx, axes.output(0)), &x_shape), reshaped(&sum(&dy, axes.output(1)), &y_shape))
}

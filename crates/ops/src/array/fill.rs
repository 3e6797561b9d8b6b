//! Tensors with a single value: Fill, ZerosLike, OnesLike, Empty.

use super::args::to_shape;
use super::units::Unit;
use graph::{Node, Output, Scope, ShapeQuery};
use op::shapes::{shape_from_input, unchanged};
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads, unary};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Fill(dims: index_type, value: T) -> output: T; T: type; index_type: {int32, int64} = int32",
        shape: fill_shape,
        grad: Grad::Rule(fill_rule),
        kernel: fill_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ZerosLike(x: T) -> y: T; T: type",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: zeros_like_kernel,
        facts: PLAIN,
    },
    Op {
        def: "OnesLike(x: T) -> y: T; T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, \
              int64, uint64, complex64, complex128, bool}",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: ones_like_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Empty(shape: int32) -> output: dtype; dtype: type; init: bool = false; stateful",
        shape: fill_shape,
        grad: Grad::Stop,
        kernel: empty_kernel,
        facts: PLAIN,
    },
];

/// A tensor with the dimensions in the vector `dims`, every element of which is `value`.
pub fn fill(dims: &Output, value: &Output) -> Output {
    dims.scope().op("Fill").input(dims).input(value).output()
}

/// Zeros of this shape.
pub fn zeros(scope: &Scope, dtype: DType, dims: &[i64]) -> Output {
    let dims = super::constant::constant(scope, Tensor::vector::<i64>(dims));
    match Tensor::zeros_of(dtype, Shape::scalar()) {
        Ok(zero) => fill(&dims, &super::constant::constant(scope, zero)),
        Err(error) => {
            scope.graph().fail(error);
            dims
        }
    }
}

/// Zeros of the shape and type of `x`.
pub fn zeros_like(x: &Output) -> Output {
    x.scope().op("ZerosLike").input(x).output()
}

/// Ones of the shape and type of `x`.
pub fn ones_like(x: &Output) -> Output {
    x.scope().op("OnesLike").input(x).output()
}

/// The value reaches every element, so all their gradients reach it.
fn fill_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let scope = dy.scope();
    let axes = super::range::range(
        &super::constant::constant(scope, Tensor::scalar(0_i32)),
        &super::shape::rank(&op.output(0)),
        &super::constant::constant(scope, Tensor::scalar(1_i32)),
    );
    Ok(grads![NoGradient, scope.op("Sum").input(dy).input(&axes).output()])
}

fn fill_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![shape_from_input(query, 0)])
}

fn fill_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|_, dims, value| {
        if dims.shape().rank() > 1 {
            return Err(invalid!("dims must represent a vector, got shape {}", dims.shape()));
        }
        if !(value.shape().rank() == 0 || **value.shape() == [1]) {
            return Err(invalid!("value must represent a scalar, got shape {}", value.shape()));
        }
        filled(to_shape(&dims)?, &value)
    })
    .heavy())
}

/// A tensor of this shape, every element of which is the one of `value`.
pub(crate) fn filled(shape: Shape, value: &Tensor) -> Result<Tensor> {
    if value.buffer().is_some() {
        return Tensor::uniform(shape, value);
    }
    let mut out = Tensor::zeros_of(value.dtype(), shape)?;
    for_units!(value.dtype(), E => fill_units(&E::of(value)?[0], E::of_mut(&mut out)?));
    Ok(out)
}

fn fill_units<E: Unit>(value: &E, out: &mut [E]) {
    out.fill(value.clone());
}

fn zeros_like_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    Ok(match setup.dtype("T")? {
        DType::VARIANT => unary(|_, x| match x.shape().rank() {
            0 => crate::data_structures::arithmetic::zeros_like(&x),
            _ => Err(invalid!("ZerosLike non-scalar Tensor with dtype=DT_VARIANT is not supported.")),
        }),
        DType::RESOURCE => return Err(setup.no_kernel()),
        dtype => unary(move |_, x| Tensor::zeros_of(dtype, x.shape())),
    })
}

fn ones_like_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let one = one_of(setup.dtype("T")?).ok_or_else(|| setup.no_kernel())?;
    Ok(unary(move |_, x| filled(x.shape().clone(), &one)))
}

/// The number one of a type.
fn one_of(dtype: DType) -> Option<Tensor> {
    use tensor::{Complex32, Complex64, bf16, f16};
    Some(match dtype {
        DType::F32 => Tensor::scalar(1_f32),
        DType::F64 => Tensor::scalar(1_f64),
        DType::F16 => Tensor::scalar(f16::ONE),
        DType::BF16 => Tensor::scalar(bf16::ONE),
        DType::I8 => Tensor::scalar(1_i8),
        DType::I16 => Tensor::scalar(1_i16),
        DType::I32 => Tensor::scalar(1_i32),
        DType::I64 => Tensor::scalar(1_i64),
        DType::U8 => Tensor::scalar(1_u8),
        DType::U16 => Tensor::scalar(1_u16),
        DType::U32 => Tensor::scalar(1_u32),
        DType::U64 => Tensor::scalar(1_u64),
        DType::BOOL => Tensor::scalar(true),
        DType::C64 => Tensor::scalar(Complex32::new(1.0, 0.0)),
        DType::C128 => Tensor::scalar(Complex64::new(1.0, 0.0)),
        _ => return None,
    })
}

fn empty_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("dtype")?;
    Ok(unary(move |_, shape| {
        if shape.shape().rank() != 1 {
            return Err(invalid!("shape must be a vector of int32, got shape {}", shape.shape()));
        }
        // Recycled memory may hold values of another session, so even an uninitialised tensor is cleared.
        Tensor::zeros_of(dtype, to_shape(&shape)?)
    })
    .heavy())
}

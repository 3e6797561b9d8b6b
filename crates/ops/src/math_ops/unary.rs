//! Sign, square, root and reciprocal, element by element.

use super::complex::{Conjugate, conj};
use super::kernels::{mapping, mapping_by, pairing_alike};
use graph::{Node, Output};
use math::function::{Number, Ordered};
use math::fused::Unary;
use math::lanes::{Map, Pairs};
use op::shapes::unchanged;
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, grads};
use status::Result;
use tensor::{Complex32, Complex64};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Abs(x: T) -> y: T; T: {bfloat16, half, float, double, int8, int16, int32, int64}",
        shape: unchanged,
        grad: Grad::Rule(abs_rule),
        kernel: |setup| {
            for_core!(setup, [f32, f64, i32, i64], T => {
                Ok(mapping(Map::vector(<T as Ordered>::absolute)))
            })
        },
        facts: PLAIN.unary(Unary::Abs),
    },
    Op {
        def: "Neg(x: T) -> y: T; T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(neg_rule),
        kernel: |setup| {
            for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => {
                Ok(mapping(Map::vector(<T as Number>::neg)))
            })
        },
        facts: PLAIN.unary(Unary::Neg),
    },
    Op {
        def: "Sign(x: T) -> y: T; T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(sign_rule),
        kernel: sign_kernel,
        facts: PLAIN.unary(Unary::Sign),
    },
    Op {
        def: "Square(x: T) -> y: T; T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, \
              uint32, uint64, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(square_rule),
        kernel: |setup| for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => Ok(mapping(Map::vector(<T as Number>::square)))),
        facts: PLAIN.unary(Unary::Square),
    },
    Op {
        def: "Reciprocal(x: T) -> y: T; T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, \
              complex128}",
        shape: unchanged,
        grad: Grad::Rule(reciprocal_rule),
        kernel: reciprocal_kernel,
        facts: PLAIN.unary(Unary::Reciprocal),
    },
    Op {
        def: "Inv(x: T) -> y: T; T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(reciprocal_rule),
        kernel: reciprocal_kernel,
        facts: PLAIN.unary(Unary::Reciprocal),
    },
    Op {
        def: "ReciprocalGrad(y: T, dy: T) -> z: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(reciprocal_grad_rule),
        kernel: reciprocal_grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "InvGrad(y: T, dy: T) -> z: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(reciprocal_grad_rule),
        kernel: reciprocal_grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Sqrt(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![sqrt_grad(&op.output(0), dy)])),
        kernel: |setup| analytic!(setup, sqrt: vector, vector; |z| z.sqrt()),
        facts: PLAIN.unary(Unary::Sqrt),
    },
    Op {
        def: "SqrtGrad(y: T, dy: T) -> z: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(sqrt_grad_rule),
        kernel: sqrt_grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Rsqrt(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![rsqrt_grad(&op.output(0), dy)])),
        kernel: |setup| analytic!(setup, rsqrt: vector, vector; |z| z.sqrt().inv()),
        facts: PLAIN.unary(Unary::Rsqrt),
    },
    Op {
        def: "RsqrtGrad(y: T, dy: T) -> z: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(rsqrt_grad_rule),
        kernel: rsqrt_grad_kernel,
        facts: PLAIN,
    },
];

unary_builders! {
    /// The distance from zero.
    abs = "Abs";
    /// One, zero or minus one; of complex numbers, the number of length one in the same direction.
    sign = "Sign";
    /// `x²`.
    square = "Square";
    /// `1 / x`.
    reciprocal = "Reciprocal";
    /// The square root.
    sqrt = "Sqrt";
    /// The inverse of the square root.
    rsqrt = "Rsqrt";
}

binary_builders! {
    /// The gradient of `reciprocal` from its result and the result's gradient.
    reciprocal_grad = "ReciprocalGrad";
    /// The gradient of `sqrt` from its result and the result's gradient.
    sqrt_grad = "SqrtGrad";
    /// The gradient of `rsqrt` from its result and the result's gradient.
    rsqrt_grad = "RsqrtGrad";
}

fn sign_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        dtype if dtype.is_complex() => {
            for_types!(setup, dtype, [Complex32, Complex64], T => {
                Ok(mapping_by(|z: T| if z == T::ZERO { z } else { z / z.norm() }))
            })
        }
        _ => for_core!(setup, [f32, f64, i32, i64], T => {
            Ok(mapping(Map::vector(<T as Ordered>::sign)))
        }),
    }
}

fn reciprocal_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    analytic!(setup, reciprocal: vector, vector; |z| z.inv())
}

/// A kernel of a result and its gradient. A zero gradient remains zero, even where the derivative is infinite.
macro_rules! derivative {
    ($setup:expr, $T:ident, $function:expr) => {
        for_core!($setup, [f32, f64, Complex32, Complex64], $T => {
            Ok(pairing_alike(Pairs::vector($function)))
        })
    };
}

fn reciprocal_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    derivative!(setup, T, |y: T, dy: T| y.conjugate().square().neg().mul_no_nan(dy))
}

fn sqrt_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    derivative!(setup, T, |y: T, dy: T| <T as Conjugate>::HALF.div(y.conjugate()).mul_no_nan(dy))
}

fn rsqrt_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    derivative!(setup, T, |y: T, dy: T| {
        let y = y.conjugate();
        <T as Conjugate>::HALF.neg().mul(y.square()).mul_no_nan(y.mul_no_nan(dy))
    })
}

fn abs_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![dy * sign(&op.input(0))])
}

fn neg_rule(_: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![-dy])
}

fn sign_rule(op: &Node, _: &Output) -> Result<Grads> {
    Ok(grads![op.scope().op("ZerosLike").input(&op.input(0)).output()])
}

fn square_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![dy * (conj(&op.input(0)) * 2.0)])
}

fn reciprocal_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![reciprocal_grad(&op.output(0), dy)])
}

/// With z = -b a²:  da = -2 dz b a.
fn reciprocal_grad_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [a, b] = op.inputs()?;
    let a = conj(&a);
    Ok(grads![conj(dz) * -2.0 * b * &a, reciprocal_grad(&a, dz)])
}

/// With z = b / (2 a):  da = -dz z / a  and  db = dz / (2 a).
fn sqrt_grad_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let over_a = dz / op.input(0);
    Ok(grads![-conj(&over_a) * op.output(0), over_a * 0.5])
}

/// With z = -b a³ / 2:  da = -3/2 dz b a².
fn rsqrt_grad_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [a, b] = op.inputs()?;
    let a = conj(&a);
    Ok(grads![conj(dz) * -1.5 * b * square(&a), rsqrt_grad(&a, dz)])
}

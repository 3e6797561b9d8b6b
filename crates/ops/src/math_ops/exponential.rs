//! Exponentials, logarithms and related functions, element by element.

use super::broadcast_grad::summed;
use super::complex::conj;
use super::division::{is_not_zero, xdivy};
use super::kernels::{pairing, pairing_alike};
use super::unary::{reciprocal, square};
use graph::{Node, Output};
use math::elementwise::cost;
use math::function::{Number, Real};
use math::fused::Unary;
use math::lanes::Pairs;
use op::shapes::{broadcast, unchanged};
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, grads};
use status::Result;
use tensor::{Complex32, Complex64, DType, bf16, f16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Exp(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * conj(&op.output(0))])),
        kernel: |setup| analytic!(setup, exp: vector, scalar; |z| z.exp()),
        facts: PLAIN.unary(Unary::Exp),
    },
    Op {
        def: "Expm1(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * exp(&conj(&op.input(0)))])),
        kernel: |setup| analytic!(setup, expm1: vector, scalar; |z| z.exp() - 1.0),
        facts: PLAIN.unary(Unary::Expm1),
    },
    Op {
        def: "Log(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * reciprocal(&conj(&op.input(0)))])),
        kernel: |setup| analytic!(setup, log: vector, scalar; |z| z.ln()),
        facts: PLAIN.unary(Unary::Log),
    },
    Op {
        def: "Log1p(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * reciprocal(&(conj(&op.input(0)) + 1.0))])),
        kernel: |setup| analytic!(setup, log1p: vector, scalar; |z| (z + 1.0).ln()),
        facts: PLAIN.unary(Unary::Log1p),
    },
    Op {
        def: "Sigmoid(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![sigmoid_grad(&conj(&op.output(0)), dy)])),
        kernel: |setup| analytic!(setup, sigmoid: vector, scalar; |z| ((-z).exp() + 1.0).inv()),
        facts: PLAIN.unary(Unary::Sigmoid).activation(),
    },
    Op {
        def: "SigmoidGrad(y: T, dy: T) -> z: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(sigmoid_grad_rule),
        kernel: sigmoid_grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Tanh(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![tanh_grad(&conj(&op.output(0)), dy)])),
        kernel: |setup| analytic!(setup, tanh: vector, scalar; |z| z.tanh()),
        facts: PLAIN.unary(Unary::Tanh).activation(),
    },
    Op {
        def: "TanhGrad(y: T, dy: T) -> z: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(tanh_grad_rule),
        kernel: tanh_grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Sinh(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * cosh(&conj(&op.input(0)))])),
        kernel: |setup| analytic!(setup, sinh: scalar, scalar; |z| z.sinh()),
        facts: PLAIN,
    },
    Op {
        def: "Cosh(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * sinh(&conj(&op.input(0)))])),
        kernel: |setup| analytic!(setup, cosh: scalar, scalar; |z| z.cosh()),
        facts: PLAIN,
    },
    Op {
        def: "Asinh(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy / cosh(&conj(&op.output(0)))])),
        kernel: |setup| analytic!(setup, asinh: scalar, scalar; |z| z.asinh()),
        facts: PLAIN,
    },
    Op {
        def: "Acosh(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy / sinh(&conj(&op.output(0)))])),
        kernel: |setup| analytic!(setup, acosh: scalar, scalar; |z| z.acosh()),
        facts: PLAIN,
    },
    Op {
        def: "Atanh(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * reciprocal(&(1.0 - square(&conj(&op.input(0)))))])),
        kernel: |setup| analytic!(setup, atanh: scalar, scalar; |z| z.atanh()),
        facts: PLAIN,
    },
    Op {
        def: "Xlogy(x: T, y: T) -> z: T; T: {half, bfloat16, float, double, complex64, complex128}",
        shape: broadcast,
        grad: Grad::Rule(xlogy_rule),
        kernel: xlogy_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Xlog1py(x: T, y: T) -> z: T; T: {half, bfloat16, float, double, complex64, complex128}",
        shape: broadcast,
        grad: Grad::Rule(xlog1py_rule),
        kernel: xlog1py_kernel,
        facts: PLAIN,
    },
];

unary_builders! {
    /// The exponential function.
    exp = "Exp";
    /// `exp(x) - 1`.
    expm1 = "Expm1";
    /// The natural logarithm.
    log = "Log";
    /// `log(1 + x)`.
    log1p = "Log1p";
    /// `1 / (1 + exp(-x))`.
    sigmoid = "Sigmoid";
    /// The hyperbolic tangent.
    tanh = "Tanh";
    /// The hyperbolic sine.
    sinh = "Sinh";
    /// The hyperbolic cosine.
    cosh = "Cosh";
    /// The inverse hyperbolic sine.
    asinh = "Asinh";
    /// The inverse hyperbolic cosine.
    acosh = "Acosh";
    /// The inverse hyperbolic tangent.
    atanh = "Atanh";
}

binary_builders! {
    /// The gradient of `sigmoid` from its result and the result's gradient.
    sigmoid_grad = "SigmoidGrad";
    /// The gradient of `tanh` from its result and the result's gradient.
    tanh_grad = "TanhGrad";
    /// `x log(y)`, and zero where `x` is zero.
    xlogy = "Xlogy";
    /// `x log(1 + y)`, and zero where `x` is zero.
    xlog1py = "Xlog1py";
}

fn sigmoid_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, Complex32, Complex64], T => {
        Ok(pairing_alike(Pairs::vector(|y: T, dy: T| dy.mul(y.mul(T::ONE.sub(y))))))
    })
}

fn tanh_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, Complex32, Complex64], T => {
        Ok(pairing_alike(Pairs::vector(|y: T, dy: T| dy.mul(T::ONE.sub(y.mul(y))))))
    })
}

/// A number times a logarithm that was rounded to their type, as TensorFlow has it for narrow ones; zero times anything
/// is zero.
#[inline(always)]
fn times<T: Number>(x: T, log: T) -> T {
    if x == T::ZERO { T::ZERO } else { x.mul(log) }
}

fn xlogy_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        dtype if dtype.is_complex() => for_types!(setup, dtype, [Complex32, Complex64], T => {
            Ok(pairing(Pairs::scalar(|x: T, y: T| if x == T::ZERO { x } else { x * y.ln() })))
        }),
        dtype @ (DType::F16 | DType::BF16) => for_types!(setup, dtype, [f16, bf16], T => {
            Ok(pairing(Pairs::scalar(|x: T, y: T| times(x, Real::log(y))).costing(cost::FUNCTION)))
        }),
        _ => for_core!(setup, [f32, f64], T => {
            Ok(pairing(Pairs::scalar(<T as Real>::xlogy).costing(cost::FUNCTION)))
        }),
    }
}

fn xlog1py_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        dtype if dtype.is_complex() => for_types!(setup, dtype, [Complex32, Complex64], T => {
            Ok(pairing(Pairs::scalar(|x: T, y: T| if x == T::ZERO { x } else { x * (y + 1.0).ln() })))
        }),
        dtype @ (DType::F16 | DType::BF16) => for_types!(setup, dtype, [f16, bf16], T => {
            Ok(pairing(Pairs::scalar(|x: T, y: T| times(x, Real::log1p(y))).costing(cost::FUNCTION)))
        }),
        _ => for_core!(setup, [f32, f64], T => {
            Ok(pairing(Pairs::scalar(<T as Real>::xlog1py).costing(cost::FUNCTION)))
        }),
    }
}

/// With z = b a (1 - a):  da = dz b (1 - 2 a).
fn sigmoid_grad_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [a, b] = op.inputs()?;
    let (a, b) = (conj(&a), conj(&b));
    let along = dz * b;
    Ok(grads![&along - &along * 2.0 * &a, sigmoid_grad(&a, dz)])
}

/// With z = b (1 - a²):  da = -2 dz b a.
fn tanh_grad_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [a, b] = op.inputs()?;
    let (a, b) = (conj(&a), conj(&b));
    Ok(grads![dz * -2.0 * b * &a, tanh_grad(&a, dz)])
}

fn xlogy_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    Ok(summed(&x, &y, xlogy(&is_not_zero(&x), &y) * dz, xdivy(&x, &y) * dz))
}

fn xlog1py_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    Ok(summed(&x, &y, xlog1py(&is_not_zero(&x), &y) * dz, xdivy(&x, &(&y + 1.0)) * dz))
}

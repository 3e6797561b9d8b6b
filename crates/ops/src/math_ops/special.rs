//! Error functions, integrals and the gamma function, element by element.

use super::compare::equal;
use super::exponential::{exp, log};
use super::gamma::polygamma;
use super::select::select_v2;
use super::trigonometry::{cos, sin};
use super::unary::square;
use graph::{Node, Output};
use op::shapes::unchanged;
use op::{Grad, Grads, Op, PLAIN, grads};
use status::Result;
use std::f64::consts::{FRAC_2_SQRT_PI, FRAC_PI_2, PI};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Erf(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * FRAC_2_SQRT_PI * gauss(op)])),
        kernel: |setup| real_function!(setup, erf: vector, scalar),
        facts: PLAIN,
    },
    Op {
        def: "Erfc(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * -FRAC_2_SQRT_PI * gauss(op)])),
        kernel: |setup| real_function!(setup, erfc: vector, scalar),
        facts: PLAIN,
    },
    Op {
        def: "Erfinv(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * (PI.sqrt() / 2.0) * exp(&square(&op.output(0)))])),
        kernel: |setup| real_function!(setup, erfinv: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "Ndtri(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * (2.0 * PI).sqrt() * exp(&(square(&op.output(0)) / 2.0))])),
        kernel: |setup| real_function!(setup, ndtri: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "Lgamma(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * digamma(&op.input(0))])),
        kernel: |setup| real_function!(setup, lgamma: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "Digamma(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(digamma_rule),
        kernel: |setup| real_function!(setup, digamma: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "Dawsn(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * (1.0 - op.input(0) * 2.0 * op.output(0))])),
        kernel: |setup| real_function!(setup, dawsn: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "Expint(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * exp(&op.input(0)) / op.input(0)])),
        kernel: |setup| real_function!(setup, expint: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "FresnelCos(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * cos(&(square(&op.input(0)) * FRAC_PI_2))])),
        kernel: |setup| real_function!(setup, fresnel_cos: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "FresnelSin(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * sin(&(square(&op.input(0)) * FRAC_PI_2))])),
        kernel: |setup| real_function!(setup, fresnel_sin: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "Spence(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(spence_rule),
        kernel: |setup| real_function!(setup, spence: scalar, scalar),
        facts: PLAIN,
    },
];

unary_builders! {
    /// The error function.
    erf = "Erf";
    /// One minus the error function.
    erfc = "Erfc";
    /// The number whose error function is `x`.
    erfinv = "Erfinv";
    /// The quantile function of the standard normal distribution.
    ndtri = "Ndtri";
    /// The logarithm of the absolute value of the gamma function.
    lgamma = "Lgamma";
    /// The derivative of `lgamma`.
    digamma = "Digamma";
    /// Dawson's integral.
    dawsn = "Dawsn";
    /// The exponential integral.
    expint = "Expint";
    /// Fresnel's integral of the cosine.
    fresnel_cos = "FresnelCos";
    /// Fresnel's integral of the sine.
    fresnel_sin = "FresnelSin";
    /// Spence's integral.
    spence = "Spence";
}

/// `exp(-x²)`.
fn gauss(op: &Node) -> Output {
    exp(&-square(&op.input(0)))
}

fn digamma_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let x = op.input(0);
    Ok(grads![dy * polygamma(&x.like(1.0), &x)])
}

/// The slope `log(x) / (1 - x)` is -1 at one, where the formula has none.
fn spence_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let x = op.input(0);
    let slope = log(&x) / (1.0 - &x);
    Ok(grads![dy * select_v2(&equal(&x, &x.like(1.0)), &x.like(-1.0), &slope)])
}

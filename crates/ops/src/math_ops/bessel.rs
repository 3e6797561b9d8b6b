//! Bessel functions, element by element.

use super::compare::equal;
use super::select::select_v2;
use super::unary::{reciprocal, sign};
use graph::{Node, Output};
use op::shapes::unchanged;
use op::{Grad, Grads, Op, PLAIN, grads};
use status::Result;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "BesselI0(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * bessel_i1(&op.input(0))])),
        kernel: |setup| real_function!(setup, bessel_i0: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "BesselI0e(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(bessel_i0e_rule),
        kernel: |setup| real_function!(setup, bessel_i0e: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "BesselI1(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(bessel_i1_rule),
        kernel: |setup| real_function!(setup, bessel_i1: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "BesselI1e(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(bessel_i1e_rule),
        kernel: |setup| real_function!(setup, bessel_i1e: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "BesselK0(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * -bessel_k1(&op.input(0))])),
        kernel: |setup| real_function!(setup, bessel_k0: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "BesselK0e(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * (op.output(0) - bessel_k1e(&op.input(0)))])),
        kernel: |setup| real_function!(setup, bessel_k0e: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "BesselK1(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(bessel_k1_rule),
        kernel: |setup| real_function!(setup, bessel_k1: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "BesselK1e(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(bessel_k1e_rule),
        kernel: |setup| real_function!(setup, bessel_k1e: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "BesselJ0(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * -bessel_j1(&op.input(0))])),
        kernel: |setup| real_function!(setup, bessel_j0: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "BesselJ1(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(bessel_j1_rule),
        kernel: |setup| real_function!(setup, bessel_j1: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "BesselY0(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * -bessel_y1(&op.input(0))])),
        kernel: |setup| real_function!(setup, bessel_y0: scalar, scalar),
        facts: PLAIN,
    },
    Op {
        def: "BesselY1(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(bessel_y1_rule),
        kernel: |setup| real_function!(setup, bessel_y1: scalar, scalar),
        facts: PLAIN,
    },
];

unary_builders! {
    /// The modified Bessel function of the first kind of order zero.
    bessel_i0 = "BesselI0";
    /// `exp(-|x|)` times the modified Bessel function of the first kind of order zero.
    bessel_i0e = "BesselI0e";
    /// The modified Bessel function of the first kind of order one.
    bessel_i1 = "BesselI1";
    /// `exp(-|x|)` times the modified Bessel function of the first kind of order one.
    bessel_i1e = "BesselI1e";
    /// The modified Bessel function of the second kind of order zero.
    bessel_k0 = "BesselK0";
    /// `exp(x)` times the modified Bessel function of the second kind of order zero.
    bessel_k0e = "BesselK0e";
    /// The modified Bessel function of the second kind of order one.
    bessel_k1 = "BesselK1";
    /// `exp(x)` times the modified Bessel function of the second kind of order one.
    bessel_k1e = "BesselK1e";
    /// The Bessel function of the first kind of order zero.
    bessel_j0 = "BesselJ0";
    /// The Bessel function of the first kind of order one.
    bessel_j1 = "BesselJ1";
    /// The Bessel function of the second kind of order zero.
    bessel_y0 = "BesselY0";
    /// The Bessel function of the second kind of order one.
    bessel_y1 = "BesselY1";
}

fn bessel_i0e_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let x = op.input(0);
    Ok(grads![dy * (bessel_i1e(&x) - sign(&x) * op.output(0))])
}

fn bessel_i1_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let x = op.input(0);
    Ok(grads![dy * slope_with(&x, 1.0, bessel_i0(&x) - op.output(0) / &x)])
}

fn bessel_i1e_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let x = op.input(0);
    let slope = bessel_i0e(&x) - op.output(0) * (sign(&x) + reciprocal(&x));
    Ok(grads![dy * slope_with(&x, 0.5, slope)])
}

fn bessel_k1_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let x = op.input(0);
    Ok(grads![dy * (-bessel_k0(&x) - op.output(0) / &x)])
}

fn bessel_k1e_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let x = op.input(0);
    Ok(grads![dy * (op.output(0) * (1.0 - reciprocal(&x)) - bessel_k0e(&x))])
}

fn bessel_j1_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let x = op.input(0);
    Ok(grads![dy * slope_with(&x, 0.5, bessel_j0(&x) - op.output(0) / &x)])
}

fn bessel_y1_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let x = op.input(0);
    Ok(grads![dy * (bessel_y0(&x) - op.output(0) / &x)])
}

/// `slope`, but `at_zero` where `x` is zero and the formula divides by it.
fn slope_with(x: &Output, at_zero: f64, slope: Output) -> Output {
    select_v2(&equal(x, &x.like(0.0)), &x.like(at_zero), &slope)
}

//! Rounding, and predicates for infinities and NaN.

use super::broadcast_grad::summed;
use super::kernels::{mapping_to, pairing};
use graph::{Node, Output};
use math::function::{Ordered, Real};
use math::fused::Unary;
use math::lanes::{Map, Pairs};
use op::shapes::{broadcast, unchanged};
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, grads, unary};
use status::Result;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Floor(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(flat_rule),
        kernel: |setup| real_function!(setup, floor: vector, vector),
        facts: PLAIN.unary(Unary::Floor),
    },
    Op {
        def: "Ceil(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(flat_rule),
        kernel: |setup| real_function!(setup, ceil: vector, vector),
        facts: PLAIN.unary(Unary::Ceil),
    },
    Op {
        def: "Round(x: T) -> y: T; T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, \
              complex128}",
        shape: unchanged,
        grad: Grad::Rule(flat_rule),
        kernel: round_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Rint(x: T) -> y: T; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(flat_rule),
        kernel: |setup| real_function!(setup, round: vector, vector),
        facts: PLAIN.unary(Unary::Round),
    },
    Op {
        def: "IsNan(x: T) -> y: bool; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| for_core_to!(setup, [f32, f64], T => Ok(mapping_to(Map::vector(|x: T| x.is_nan())))),
        facts: PLAIN,
    },
    Op {
        def: "IsInf(x: T) -> y: bool; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| for_core_to!(setup, [f32, f64], T => Ok(mapping_to(Map::vector(|x: T| x.absolute() == T::INFINITY)))),
        facts: PLAIN,
    },
    Op {
        def: "IsFinite(x: T) -> y: bool; T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| for_core_to!(setup, [f32, f64], T => Ok(mapping_to(Map::vector(|x: T| x.absolute() < T::INFINITY)))),
        facts: PLAIN,
    },
    Op {
        def: "NextAfter(x1: T, x2: T) -> output: T; T: {double, float} = float",
        shape: broadcast,
        grad: Grad::Rule(next_after_rule),
        kernel: |setup| for_types!(setup, setup.dtype("T")?, [f32, f64], T => Ok(pairing(Pairs::scalar(<T as Real>::next_after)))),
        facts: PLAIN,
    },
];

unary_builders! {
    /// The largest whole number not above `x`.
    floor = "Floor";
    /// The smallest whole number not below `x`.
    ceil = "Ceil";
    /// The nearest whole number; halves go to the even one.
    round = "Round";
    /// The nearest whole number; halves go to the even one.
    rint = "Rint";
    /// True where `x` is NaN.
    is_nan = "IsNan";
    /// True where `x` is infinite.
    is_inf = "IsInf";
    /// True where `x` is neither infinite nor NaN.
    is_finite = "IsFinite";
}

binary_builders! {
    /// The neighbour of `x` in the direction of `y`.
    next_after = "NextAfter";
}

fn round_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        dtype if dtype.is_integer() => Ok(unary(|_, x| Ok(x)).free()),
        _ => real_function!(setup, round: vector, vector),
    }
}

/// A step function has no slope.
fn flat_rule(_: &Node, _: &Output) -> Result<Grads> {
    Ok(grads![NoGradient])
}

fn next_after_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    Ok(summed(&x, &y, dz.clone(), dz * 0.0))
}

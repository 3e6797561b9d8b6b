//! Sums, differences, products and extremes of two broadcast tensors.

use super::broadcast_grad::summed;
use super::compare::{greater_equal, less_equal};
use super::complex::conj;
use super::kernels::pairing;
use super::select::select_v2;
use super::strings;
use graph::{Node, Output};
use math::function::{Number, Ordered};
use math::fused::Binary;
use math::lanes::Pairs;
use op::shapes::broadcast;
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup};
use status::Result;
use tensor::{Complex32, Complex64, DType};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Add(x: T, y: T) -> z: T; T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, \
              complex64, complex128, string}",
        shape: broadcast,
        grad: Grad::Rule(add_rule),
        kernel: add_kernel,
        facts: PLAIN.binary(Binary::Add),
    },
    Op {
        def: "AddV2(x: T, y: T) -> z: T; T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, \
              int16, int32, int64, complex64, complex128}; commutative; aggregate",
        shape: broadcast,
        grad: Grad::Rule(add_rule),
        kernel: add_kernel,
        facts: PLAIN.binary(Binary::Add),
    },
    Op {
        def: "Sub(x: T, y: T) -> z: T; T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, \
              complex64, complex128, uint32, uint64}",
        shape: broadcast,
        grad: Grad::Rule(sub_rule),
        kernel: |setup| for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => Ok(pairing(Pairs::vector(<T as Number>::sub)))),
        facts: PLAIN.binary(Binary::Sub),
    },
    Op {
        def: "Mul(x: T, y: T) -> z: T; T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, \
              uint64, int64, complex64, complex128}; commutative",
        shape: broadcast,
        grad: Grad::Rule(mul_rule),
        kernel: |setup| for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => Ok(pairing(Pairs::vector(<T as Number>::mul)))),
        facts: PLAIN.binary(Binary::Mul),
    },
    Op {
        def: "MulNoNan(x: T, y: T) -> z: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: broadcast,
        grad: Grad::Rule(mul_no_nan_rule),
        kernel: mul_no_nan_kernel,
        facts: PLAIN.binary(Binary::MulNoNan),
    },
    Op {
        def: "SquaredDifference(x: T, y: T) -> z: T; T: {bfloat16, half, float, double, int32, int64, complex64, \
              complex128}; commutative",
        shape: broadcast,
        grad: Grad::Rule(squared_difference_rule),
        kernel: squared_difference_kernel,
        facts: PLAIN.binary(Binary::SquaredDifference),
    },
    Op {
        def: "Maximum(x: T, y: T) -> z: T; T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, \
              uint32, int64, uint64}",
        shape: broadcast,
        grad: Grad::Rule(maximum_rule),
        kernel: |setup| for_core!(setup, [f32, f64, i32, i64, u64], T => Ok(pairing(Pairs::vector(<T as Ordered>::larger)))),
        facts: PLAIN.binary(Binary::Max),
    },
    Op {
        def: "Minimum(x: T, y: T) -> z: T; T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, \
              uint32, int64, uint64}",
        shape: broadcast,
        grad: Grad::Rule(minimum_rule),
        kernel: |setup| for_core!(setup, [f32, f64, i32, i64, u64], T => Ok(pairing(Pairs::vector(<T as Ordered>::smaller)))),
        facts: PLAIN.binary(Binary::Min),
    },
];

binary_builders! {
    /// `x + y`.
    add = "AddV2";
    /// `x - y`.
    sub = "Sub";
    /// `x * y`.
    mul = "Mul";
    /// `x * y`, and zero where `y` is zero, even if `x` is infinite or NaN.
    mul_no_nan = "MulNoNan";
    /// `(x - y)²`.
    squared_difference = "SquaredDifference";
    /// The larger of `x` and `y`.
    maximum = "Maximum";
    /// The smaller of `x` and `y`.
    minimum = "Minimum";
}

fn add_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        DType::STRING => Ok(strings::concatenating()),
        _ => {
            for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => Ok(pairing(Pairs::vector(<T as Number>::add))))
        }
    }
}

fn mul_no_nan_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, Complex32, Complex64], T => {
        Ok(pairing(Pairs::vector(<T as Number>::mul_no_nan)))
    })
}

fn squared_difference_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => {
        Ok(pairing(Pairs::vector(<T as Number>::squared_difference)))
    })
}

fn add_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    Ok(summed(&x, &y, dz.clone(), dz.clone()))
}

fn sub_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    Ok(summed(&x, &y, dz.clone(), -dz))
}

/// With z = x y:  dx = dz y  and  dy = dz x, each summed back over the axes that were broadcast.
fn mul_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    Ok(summed(&x, &y, dz * conj(&y), conj(&x) * dz))
}

fn mul_no_nan_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    Ok(summed(&x, &y, mul_no_nan(dz, &y), mul_no_nan(&x, dz)))
}

fn squared_difference_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    let dx = dz * 2.0 * (&x - &y);
    let dy = -&dx;
    Ok(summed(&x, &y, dx, dy))
}

fn maximum_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    Ok(chosen(&x, &y, &greater_equal(&x, &y), dz))
}

fn minimum_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    Ok(chosen(&x, &y, &less_equal(&x, &y), dz))
}

/// The gradient is passed to `x` where it was chosen, otherwise to `y`.
fn chosen(x: &Output, y: &Output, is_x: &Output, dz: &Output) -> Grads {
    let zero = dz.like(0.0);
    summed(x, y, select_v2(is_x, dz, &zero), select_v2(is_x, &zero, dz))
}

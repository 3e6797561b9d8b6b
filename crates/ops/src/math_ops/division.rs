//! Quotients and remainders of two broadcast tensors.

use super::broadcast_grad::summed;
use super::cast::cast;
use super::compare::not_equal;
use super::complex::conj;
use super::kernels::{pairing, pairing_checked};
use graph::{Node, Output};
use math::function::{Number, Ordered};
use math::fused::Binary;
use math::lanes::Pairs;
use op::shapes::broadcast;
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, grads};
use status::{Result, invalid};
use tensor::{Complex32, Complex64, Element};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Div(x: T, y: T) -> z: T; T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, \
              uint64, int64, complex64, complex128}",
        shape: broadcast,
        grad: Grad::Rule(div_rule),
        kernel: div_kernel,
        facts: PLAIN.binary(Binary::Div),
    },
    Op {
        def: "RealDiv(x: T, y: T) -> z: T; T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, \
              uint32, uint64, int64, complex64, complex128}",
        shape: broadcast,
        grad: Grad::Rule(div_rule),
        kernel: real_div_kernel,
        facts: PLAIN.binary(Binary::Div),
    },
    Op {
        def: "DivNoNan(x: T, y: T) -> z: T; T: {half, float, bfloat16, double, complex64, complex128}",
        shape: broadcast,
        grad: Grad::Rule(div_no_nan_rule),
        kernel: div_no_nan_kernel,
        facts: PLAIN.binary(Binary::DivNoNan),
    },
    Op {
        def: "Xdivy(x: T, y: T) -> z: T; T: {half, bfloat16, float, double, complex64, complex128}",
        shape: broadcast,
        grad: Grad::Rule(xdivy_rule),
        kernel: xdivy_kernel,
        facts: PLAIN,
    },
    Op {
        def: "FloorDiv(x: T, y: T) -> z: T; T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, \
              uint32, uint64, int64, complex64, complex128}",
        shape: broadcast,
        grad: Grad::Rule(no_rule),
        kernel: floor_div_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TruncateDiv(x: T, y: T) -> z: T; T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, \
              uint32, uint64, int64, complex64, complex128}",
        shape: broadcast,
        grad: Grad::Rule(no_rule),
        kernel: truncate_div_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Mod(x: T, y: T) -> z: T; T: {int32, int64, half, half, bfloat16, float, double}",
        shape: broadcast,
        grad: Grad::Unknown,
        kernel: truncate_mod_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TruncateMod(x: T, y: T) -> z: T; T: {int32, int64, bfloat16, half, float, double}",
        shape: broadcast,
        grad: Grad::Unknown,
        kernel: truncate_mod_kernel,
        facts: PLAIN,
    },
    Op {
        def: "FloorMod(x: T, y: T) -> z: T; T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, \
              half, float, double}",
        shape: broadcast,
        grad: Grad::Rule(floor_mod_rule),
        kernel: floor_mod_kernel,
        facts: PLAIN,
    },
];

binary_builders! {
    /// `x / y`; of integers, cut towards zero.
    div = "Div";
    /// `x / y` of floating-point numbers.
    real_div = "RealDiv";
    /// `x / y`, and zero where `y` is zero.
    div_no_nan = "DivNoNan";
    /// `x / y`, and zero where `x` is zero.
    xdivy = "Xdivy";
    /// The largest whole number not above `x / y`.
    floor_div = "FloorDiv";
    /// `x / y` cut towards zero.
    truncate_div = "TruncateDiv";
    /// The remainder of `floor_div`, with the sign of `y`.
    floor_mod = "FloorMod";
    /// The remainder of `truncate_div`, with the sign of `x`.
    truncate_mod = "TruncateMod";
}

/// Integer divisors must not be zero.
fn divisors<T: Number>(_: &[T], y: &[T]) -> Result<()> {
    match y.contains(&T::ZERO) {
        true => Err(invalid!("Integer division by zero")),
        false => Ok(()),
    }
}

/// A kernel that divides integers one by one, after a look at the divisors.
fn dividing<T: Number + Element>(divide: impl Fn(T, T) -> T + Copy) -> Kernel {
    pairing_checked(Pairs::scalar(divide).costing(4.0), divisors::<T>)
}

fn div_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        dtype if dtype.is_integer() => for_core!(setup, [i32, i64, u64], T => Ok(dividing(<T as Number>::div))),
        _ => real_div_kernel(setup),
    }
}

fn real_div_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, Complex32, Complex64], T => {
        Ok(pairing(Pairs::vector(<T as Number>::div)))
    })
}

fn div_no_nan_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, Complex32, Complex64], T => {
        Ok(pairing(Pairs::vector(<T as Number>::div_no_nan)))
    })
}

fn xdivy_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, Complex32, Complex64], T => {
        Ok(pairing(Pairs::vector(<T as Number>::xdivy)))
    })
}

fn floor_div_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        dtype if dtype.is_integer() => for_core!(setup, [i32, i64, u64], T => Ok(dividing(<T as Ordered>::floor_div))),
        _ => for_core!(setup, [f32, f64], T => Ok(pairing(Pairs::vector(<T as Ordered>::floor_div)))),
    }
}

fn truncate_div_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        dtype if dtype.is_integer() => {
            for_core!(setup, [i32, i64, u64], T => Ok(dividing(<T as Ordered>::truncate_div)))
        }
        _ => for_core!(setup, [f32, f64], T => Ok(pairing(Pairs::vector(<T as Ordered>::truncate_div)))),
    }
}

fn floor_mod_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        dtype if dtype.is_integer() => for_core!(setup, [i32, i64, u64], T => Ok(dividing(<T as Ordered>::floor_mod))),
        _ => for_core!(setup, [f32, f64], T => Ok(pairing(Pairs::scalar(<T as Ordered>::floor_mod)))),
    }
}

fn truncate_mod_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        dtype if dtype.is_integer() => {
            for_core!(setup, [i32, i64, u64], T => Ok(dividing(<T as Ordered>::truncate_mod)))
        }
        _ => for_core!(setup, [f32, f64], T => Ok(pairing(Pairs::scalar(<T as Ordered>::truncate_mod)))),
    }
}

/// With z = x / y:  dx = dz / y  and  dy = -dz x / y².
fn div_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    let (cx, cy) = (conj(&x), conj(&y));
    let dy = dz * (-cx / &cy / &cy);
    Ok(summed(&x, &y, dz / cy, dy))
}

fn div_no_nan_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    let (cx, cy) = (conj(&x), conj(&y));
    let dy = dz * div_no_nan(&div_no_nan(&-cx, &cy), &cy);
    Ok(summed(&x, &y, div_no_nan(dz, &cy), dy))
}

fn xdivy_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    let dx = xdivy(&is_not_zero(&x), &y) * dz;
    let dy = xdivy(&-&x, &super::unary::square(&y)) * dz;
    Ok(summed(&x, &y, dx, dy))
}

/// One where `x` is not zero, else zero.
pub(super) fn is_not_zero(x: &Output) -> Output {
    cast(&not_equal(x, &x.like(0.0)), x.dtype())
}

/// A step function has no slope.
fn no_rule(_: &Node, _: &Output) -> Result<Grads> {
    Ok(grads![op::NoGradient, op::NoGradient])
}

/// With z = x - y floor(x / y):  dx = dz  and  dy = -dz floor(x / y).
fn floor_mod_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    let dy = dz * -floor_div(&x, &y);
    Ok(summed(&x, &y, dz.clone(), dy))
}

//! Powers of two broadcast tensors.

use super::broadcast_grad::summed;
use super::compare::{greater, not_equal};
use super::complex::conj;
use super::exponential::log;
use super::kernels::{pairing, pairing_checked, run_map, run_pairs};
use super::select::select_v2;
use graph::{Node, Output};
use math::function::{Number, Real};
use math::lanes::{Map, Pairs};
use op::shapes::broadcast;
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, binary};
use status::{Result, invalid};
use tensor::{Complex32, Complex64, Element};

pub(crate) const OPS: &[Op] = &[Op {
    def: "Pow(x: T, y: T) -> z: T; T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, \
          complex128}",
    shape: broadcast,
    grad: Grad::Rule(pow_rule),
    kernel: pow_kernel,
    facts: PLAIN,
}];

binary_builders! {
    /// `x` to the power `y`.
    pow = "Pow";
}

fn pow_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        dtype if dtype.is_integer() => for_core!(setup, [i32, i64], T => {
            Ok(pairing_checked(Pairs::scalar(integer_power::<T>), exponents::<T>))
        }),
        dtype if dtype.is_complex() => for_types!(setup, dtype, [Complex32, Complex64], T => {
            Ok(pairing(Pairs::scalar(|x: T, y: T| if y == T::ZERO { T::ONE } else { x.powc(y) })))
        }),
        _ => for_core!(setup, [f32, f64], T => Ok(powers::<T>())),
    }
}

/// Powers of real numbers; squares, which are most of them, take the short way.
fn powers<T: Element + Real>() -> Kernel {
    let (power, square) = (Pairs::scalar(<T as Real>::pow), Map::vector(<T as Number>::square));
    binary(move |ctx, x, y| {
        let is_square = y.shape().rank() == 0 && y.values::<T>()? == [T::from_f64(2.0)];
        if is_square { run_map(ctx, &square, x) } else { run_pairs(ctx, &power, x, y) }
    })
}

/// Integer exponents must not be negative.
fn exponents<T: Number + PartialOrd>(_: &[T], y: &[T]) -> Result<()> {
    match y.iter().any(|&y| y < T::ZERO) {
        true => Err(invalid!("Integers to negative integer powers are not allowed")),
        false => Ok(()),
    }
}

/// Integer power by repeated squaring; the exponent is not negative.
fn integer_power<T: Number + Into<i64>>(x: T, y: T) -> T {
    let (mut power, mut square, mut rest): (T, T, i64) = (T::ONE, x, y.into());
    while rest > 0 {
        if rest & 1 == 1 {
            power = power.mul(square);
        }
        square = square.square();
        rest >>= 1;
    }
    power
}

/// With z = xʸ:  dx = dz y x^(y-1)  and  dy = dz z log(x), which is taken to be zero where x has no logarithm.
fn pow_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    let (cx, cy) = (conj(&x), conj(&y));
    let dx = dz * &cy * pow(&cx, &(&cy - 1.0));
    let zero = cx.like(0.0);
    let has_log = if cx.dtype().is_complex() { not_equal(&cx, &zero) } else { greater(&cx, &zero) };
    let logarithm = select_v2(&has_log, &log(&select_v2(&has_log, &cx, &cx.like(1.0))), &zero);
    let dy = dz * conj(&op.output(0)) * logarithm;
    Ok(summed(&x, &y, dx, dy))
}

//! Rejects infinities and NaN: CheckNumerics, CheckNumericsV2.

use graph::{AttrValue, Node, Output};
use op::shapes::unchanged;
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, grads, unary};
use status::{Result, invalid};
use tensor::{Element, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "CheckNumerics(tensor: T) -> output: T; T: {bfloat16, half, float, double}; message: string; stateful",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| check_rule("CheckNumerics", op, dy)),
        kernel: |setup| check_kernel(setup, found_v1),
        facts: PLAIN.runs_unread(),
    },
    Op {
        def: "CheckNumericsV2(tensor: T) -> output: T; T: {bfloat16, half, float, double}; message: string; stateful",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| check_rule("CheckNumericsV2", op, dy)),
        kernel: |setup| check_kernel(setup, found_v2),
        facts: PLAIN.runs_unread(),
    },
];

/// The same value; an error with this message if an element is infinite or not a number.
pub fn check_numerics(tensor: &Output, message: &str) -> Output {
    tensor.scope().op("CheckNumerics").input(tensor).attr("message", message).output()
}

fn check_rule(name: &str, op: &Node, dy: &Output) -> Result<Grads> {
    let message = match op.attr("message")? {
        AttrValue::String(message) => String::from_utf8_lossy(&message).into_owned(),
        _ => String::new(),
    };
    let message = format!("Not a number (NaN) or infinity (Inf) values detected in gradient. {message}");
    Ok(grads![dy.scope().op(name).input(dy).attr("message", message).output()])
}

/// The kinds of invalid values that were found.
#[derive(Clone, Copy, Default)]
struct Found {
    low: bool,
    high: bool,
    nan: bool,
}

fn found_v1(found: Found) -> &'static str {
    match (found.low || found.high, found.nan) {
        (true, true) => "Inf and NaN",
        (true, false) => "Inf",
        _ => "NaN",
    }
}

fn found_v2(found: Found) -> &'static str {
    match (found.low, found.high, found.nan) {
        (true, true, true) => "-Inf, +Inf, and NaN",
        (true, true, false) => "-Inf and +Inf",
        (true, false, true) => "-Inf and NaN",
        (true, false, false) => "-Inf",
        (false, true, true) => "+Inf and NaN",
        (false, true, false) => "+Inf",
        _ => "NaN",
    }
}

fn check_kernel(setup: &Setup<'_>, name: fn(Found) -> &'static str) -> Result<Kernel> {
    let message = setup.string("message")?;
    for_floats!(setup, setup.dtype("T")?, T => Ok(unary(move |_, tensor| check::<T>(&message, name, tensor))))
}

fn check<T: Float>(message: &str, name: fn(Found) -> &'static str, tensor: Tensor) -> Result<Tensor> {
    let values = tensor.values::<T>()?;
    // The common case is one pass without branches.
    if values.iter().fold(true, |good, value| good & value.is_good()) {
        return Ok(tensor);
    }
    let found = values.iter().fold(Found::default(), |found, value| {
        let value = value.to_single();
        Found {
            low: found.low | (value == f32::NEG_INFINITY),
            high: found.high | (value == f32::INFINITY),
            nan: found.nan | value.is_nan(),
        }
    });
    Err(invalid!("{message} : Tensor had {} values", name(found)))
}

/// A floating-point number.
trait Float: Element {
    /// Whether it is neither infinite nor not a number.
    fn is_good(self) -> bool;
    /// The value as a 32-bit float: infinities and NaN are preserved.
    fn to_single(self) -> f32;
}

macro_rules! floats {
    ($($float:ty, $to:expr;)*) => {$(
        impl Float for $float {
            fn is_good(self) -> bool {
                self.is_finite()
            }

            fn to_single(self) -> f32 {
                let to: fn($float) -> f32 = $to;
                to(self)
            }
        }
    )*};
}

floats! {
    f32, |x| x;
    // A large finite double must not become infinite.
    f64, |x| if x.is_finite() { 0.0 } else { x as f32 };
    f16, |x| x.to_f32();
    bf16, |x| x.to_f32();
}

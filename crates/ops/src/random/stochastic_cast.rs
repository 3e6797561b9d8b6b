//! StochasticCastToInt: rounds floats up or down at random, as likely as they are close.

use super::stream::from_key;
use math::philox::{Draw, Philox};
use op::shapes::unchanged;
use op::{Grad, Kernel, Op, PLAIN, Setup, many, outputs};
use status::Result;
use tensor::{DType, Element, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[Op {
    def: "StochasticCastToInt(input: Tin, key: uint64, counter: uint64, alg: int32) -> output: Tout; \
          Tin: {half, bfloat16, float, double}; Tout: {int8, int16, int32}",
    shape: unchanged,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

/// A float in whose arithmetic numbers are rounded.
trait Rounded: Draw + Element {
    fn to_f64(self) -> f64;

    /// The sum in the precision of the type.
    fn sum(a: f64, b: f64) -> f64;
}

macro_rules! rounded {
    ($($float:ty, $to:expr, $from:expr;)*) => {$(
        impl Rounded for $float {
            fn to_f64(self) -> f64 {
                let to: fn($float) -> f64 = $to;
                to(self)
            }

            fn sum(a: f64, b: f64) -> f64 {
                let from: fn(f64) -> $float = $from;
                from(a + b).to_f64()
            }
        }
    )*};
}

rounded! {
    f32, |x| x.into(), |x| x as f32;
    f64, |x| x, |x| x;
    f16, |x| f16::to_f64(x), f16::from_f64;
    bf16, |x| bf16::to_f64(x), bf16::from_f64;
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("Tout")? {
        DType::I8 => kernel_to::<i8>(setup, |x| x as i8, [i8::MIN.into(), i8::MAX.into()]),
        DType::I16 => kernel_to::<i16>(setup, |x| x as i16, [i16::MIN.into(), i16::MAX.into()]),
        DType::I32 => kernel_to::<i32>(setup, |x| x as i32, [i32::MIN.into(), i32::MAX.into()]),
        _ => Err(setup.no_kernel()),
    }
}

fn kernel_to<T: Element>(setup: &Setup<'_>, to: fn(f64) -> T, limits: [f64; 2]) -> Result<Kernel> {
    for_floats!(setup, setup.dtype("Tin")?, F => Ok(many(move |_, mut inputs| {
        let input = inputs.tensor(0)?;
        let stream = from_key(&inputs.tensor(1)?, &inputs.tensor(2)?, &inputs.tensor(3)?, 3)?;
        let mut out = Tensor::scratch::<T>(input.shape())?;
        let mut rounding = Rounding { stream, used: 0 };
        for (out, &value) in out.values_mut::<T>()?.iter_mut().zip(input.values::<F>()?) {
            *out = to(rounding.round(value, limits));
        }
        Ok(outputs![out])
    })))
}

/// Takes one block of a stream for each number that is not whole.
struct Rounding {
    stream: Philox,
    used: u64,
}

impl Rounding {
    fn round<F: Rounded>(&mut self, value: F, [lowest, highest]: [f64; 2]) -> f64 {
        let number = value.to_f64();
        if number.is_nan() {
            return 0.0;
        }
        if number >= highest || number <= lowest || number.floor() == number {
            return number.clamp(lowest, highest);
        }
        let mut drawn = [value; 4];
        F::uniform(self.stream.block(self.used), &mut drawn);
        self.used += 1;
        let random = drawn[0].to_f64();
        match number < 0.0 {
            true => F::sum(number, random).floor(),
            false => F::sum(F::sum(number, 1.0), -random).floor(),
        }
    }
}

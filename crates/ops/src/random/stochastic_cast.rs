//! StochasticCastToInt: rounds floats up or down at random, as likely as they are close.

use super::stream::{AUTO, PHILOX};
use math::philox::{Draw, Philox};
use op::shapes::unchanged;
use op::{Grad, Inputs, Kernel, Op, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
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
    const ZERO: Self;
    /// How many numbers TensorFlow handles together.
    const LANES: usize;

    fn to_f64(self) -> f64;

    /// The sum in the precision of the type.
    fn sum(a: f64, b: f64) -> f64;
}

macro_rules! rounded {
    ($($float:ty, $zero:expr, $lanes:expr, $to:expr, $from:expr;)*) => {$(
        impl Rounded for $float {
            const ZERO: $float = $zero;
            const LANES: usize = $lanes;

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
    f32, 0.0, 8, |x| x.into(), |x| x as f32;
    f64, 0.0, 4, |x| x, |x| x;
    f16, f16::ZERO, 1, f16::to_f64, f16::from_f64;
    bf16, bf16::ZERO, 1, bf16::to_f64, bf16::from_f64;
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("Tout")? {
        DType::I8 => kernel_to::<i8>(setup, |x| x as i8, [i8::MIN.into(), i8::MAX.into()]),
        DType::I16 => kernel_to::<i16>(setup, |x| x as i16, [i16::MIN.into(), i16::MAX.into()]),
        DType::I32 => kernel_to::<i32>(setup, |x| x, [i32::MIN.into(), i32::MAX.into()]),
        _ => Err(setup.no_kernel()),
    }
}

fn kernel_to<T: Element>(setup: &Setup<'_>, to: fn(i32) -> T, limits: [f64; 2]) -> Result<Kernel> {
    let wide = T::DTYPE == DType::I32;
    for_floats!(setup, setup.dtype("Tin")?, F => Ok(many(move |_, mut inputs| {
        let stream = stream(&inputs)?;
        let input = inputs.tensor(0)?;
        let values = input.values::<F>()?;
        // TensorFlow converts floats and doubles to 32-bit integers eight at a time; their draws are shared.
        let grouped = match wide && F::LANES > 1 {
            true => values.len() / GROUP * GROUP,
            false => 0,
        };
        let mut rounding = Rounding { stream, used: 0, limits: limits.map(|limit| F::sum(limit, 0.0)) };
        let mut out = Tensor::scratch::<T>(input.shape())?;
        let (first, rest) = out.values_mut::<T>()?.split_at_mut(grouped);
        for (out, values) in first.chunks_exact_mut(F::LANES).zip(values.chunks_exact(F::LANES)) {
            let drawn = rounding.draw::<F>();
            for (lane, (out, &value)) in out.iter_mut().zip(values).enumerate() {
                *out = to(integer(rounding.round(value, drawn[lane % F::PER_BLOCK])));
            }
        }
        for (out, &value) in rest.iter_mut().zip(&values[grouped..]) {
            let random = if rounding.whole(value) { value } else { rounding.draw::<F>()[0] };
            *out = to(integer(rounding.round(value, random)));
        }
        Ok(outputs![out])
    })))
}

/// A whole number as an integer, as processors convert it: what does not fit becomes the smallest integer.
fn integer(value: f64) -> i32 {
    if (-2_147_483_648.0..2_147_483_648.0).contains(&value) { value as i32 } else { i32::MIN }
}

/// How many numbers are converted together.
const GROUP: usize = 8;

/// The stream of key and counter. As in TensorFlow, they change places, and the second half of the counter is ignored.
fn stream(inputs: &Inputs) -> Result<Philox> {
    let (key, counter, algorithm) = (inputs.look(1)?, inputs.look(2)?, inputs.look(3)?);
    if algorithm.shape().rank() != 0 {
        return Err(invalid!("input 3 (0-based) must have shape [], not {}", algorithm.shape()));
    }
    if key.shape().dims() != [1] {
        return Err(invalid!(
            "key must have shape [1], not {}. (Note that batched keys are not supported yet.)",
            key.shape()
        ));
    }
    let first = counter.values::<u64>()?.first().copied().filter(|_| counter.shape().rank() == 1);
    let Some(first) = first else {
        return Err(invalid!(
            "counter must be a vector with length at least 1; got shape: {}. (Note that batched counters are not \
             supported yet.)",
            counter.shape()
        ));
    };
    match i64::from(algorithm.to_scalar::<i32>()?) {
        PHILOX | AUTO => Ok(Philox::from_seeds(first, key.values::<u64>()?[0])),
        other => Err(invalid!("Unsupported algorithm id: {other}")),
    }
}

/// Draws from a stream for numbers that are not whole.
struct Rounding {
    stream: Philox,
    used: u64,
    limits: [f64; 2],
}

impl Rounding {
    /// The numbers of the next block.
    fn draw<F: Rounded>(&mut self) -> [F; 4] {
        let mut drawn = [F::ZERO; 4];
        F::uniform(self.stream.block(self.used), &mut drawn);
        self.used += 1;
        drawn
    }

    /// Whether a number is rounded without a draw.
    fn whole<F: Rounded>(&self, value: F) -> bool {
        let ([lowest, highest], number) = (self.limits, value.to_f64());
        number.is_nan() || number >= highest || number <= lowest || number.floor() == number
    }

    fn round<F: Rounded>(&self, value: F, random: F) -> f64 {
        let ([lowest, highest], number, random) = (self.limits, value.to_f64(), random.to_f64());
        if number.is_nan() {
            return 0.0;
        }
        if self.whole(value) {
            return number.clamp(lowest, highest);
        }
        match number < 0.0 {
            true => F::sum(number, random).floor(),
            false => F::sum(F::sum(number, 1.0), -random).floor(),
        }
    }
}

//! Sequences of numbers: Range, LinSpace.

use graph::{Output, ShapeQuery};
use op::shapes::integers;
use op::{Grad, Kernel, Op, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
use tensor::{DType, Element, PartialShape, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Range(start: Tidx, limit: Tidx, delta: Tidx) -> output: Tidx; Tidx: {bfloat16, half, float, double, \
              int8, int16, int32, int64, uint16, uint32, uint64} = int32",
        shape: range_shape,
        grad: Grad::Stop,
        kernel: range_kernel,
        facts: PLAIN,
    },
    Op {
        def: "LinSpace(start: T, stop: T, num: Tidx) -> output: T; T: {bfloat16, half, float, double}; \
              Tidx: {int32, int64} = int32",
        shape: lin_space_shape,
        grad: Grad::Stop,
        kernel: lin_space_kernel,
        facts: PLAIN,
    },
];

/// `start, start + delta, …` as long as they are below `limit` (above it, for a negative `delta`).
pub fn range(start: &Output, limit: &Output, delta: &Output) -> Output {
    start.scope().op("Range").input(start).input(limit).input(delta).output()
}

/// `num` numbers from `start` to `stop`, evenly spaced.
pub fn lin_space(start: &Output, stop: &Output, num: &Output) -> Output {
    start.scope().op("LinSpace").input(start).input(stop).input(num).output()
}

fn range_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let value = |input: usize| query.constants[input].as_ref().and_then(|value| integers(value).ok()?.first().copied());
    let count = match (value(0), value(1), value(2)) {
        (Some(start), Some(limit), Some(delta)) => whole_steps(start.into(), limit.into(), delta.into())?,
        _ => return Ok(vec![PartialShape::of_rank(1)]),
    };
    Ok(vec![PartialShape::new(&[count as i64])])
}

fn lin_space_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let num = query.constants[2].as_ref().and_then(|num| integers(num).ok()?.first().copied());
    Ok(vec![PartialShape::new(&[num.unwrap_or(-1)])])
}

/// A number that a sequence can be made of. All is computed in its own arithmetic, to round as TensorFlow does.
trait Step: Element {
    /// The number of elements from `start` to `limit`.
    fn count(start: Self, limit: Self, delta: Self) -> Result<usize>;
    /// `start + index delta`.
    fn at(start: Self, delta: Self, index: usize) -> Self;
    /// The length of one of `parts` equal steps from `start` to `stop`.
    fn part(start: Self, stop: Self, parts: usize) -> Self;
}

macro_rules! whole {
    ($($int:ty),*) => {$(
        impl Step for $int {
            fn count(start: $int, limit: $int, delta: $int) -> Result<usize> {
                whole_steps(start.into(), limit.into(), delta.into())
            }

            fn at(start: $int, delta: $int, index: usize) -> $int {
                start.wrapping_add(delta.wrapping_mul(index as $int))
            }

            fn part(start: $int, stop: $int, parts: usize) -> $int {
                stop.wrapping_sub(start) / parts as $int
            }
        }
    )*};
}

whole!(i32, i64);

macro_rules! real {
    ($($float:ty, $from:expr, $to:expr;)*) => {$(
        impl Step for $float {
            fn count(start: $float, limit: $float, delta: $float) -> Result<usize> {
                let to: fn($float) -> f64 = $to;
                check_direction(to(start), to(limit), to(delta))?;
                real_steps(to((limit - start) / delta))
            }

            fn at(start: $float, delta: $float, index: usize) -> $float {
                let from: fn(usize) -> $float = $from;
                start + from(index) * delta
            }

            fn part(start: $float, stop: $float, parts: usize) -> $float {
                let from: fn(usize) -> $float = $from;
                (stop - start) / from(parts)
            }
        }
    )*};
}

real! {
    f32, |n| n as f32, |x| x.into();
    f64, |n| n as f64, |x| x;
    f16, |n| f16::from_f32(n as f32), |x| x.to_f64();
    bf16, |n| bf16::from_f32(n as f32), |x| x.to_f64();
}

fn whole_steps(start: i128, limit: i128, delta: i128) -> Result<usize> {
    check_direction(start, limit, delta)?;
    let count = (limit - start).unsigned_abs();
    usize::try_from(count.div_ceil(delta.unsigned_abs())).ok().filter(|&n| n <= MOST).ok_or_else(too_many)
}

fn real_steps(steps: f64) -> Result<usize> {
    let count = steps.abs().ceil();
    if count.is_nan() || count > MOST as f64 { Err(too_many()) } else { Ok(count as usize) }
}

const MOST: usize = i64::MAX as usize;

fn too_many() -> status::Error {
    invalid!("Requires ((limit - start) / delta) <= {MOST}")
}

fn check_direction<N: std::fmt::Display + PartialOrd + Default>(start: N, limit: N, delta: N) -> Result<()> {
    let zero = N::default();
    if delta == zero {
        return Err(invalid!("Requires delta != 0: {delta}"));
    }
    if delta > zero && !(start <= limit) {
        return Err(invalid!("Requires start <= limit when delta > 0: {start}/{limit}"));
    }
    if !(delta > zero) && !(start >= limit) {
        return Err(invalid!("Requires start >= limit when delta < 0: {start}/{limit}"));
    }
    Ok(())
}

fn range_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("Tidx")?, [i32, i64, f32, f64, f16, bf16], T => {
        Ok(many(|_, mut inputs| {
            let (start, limit, delta) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
            Ok(outputs![run_range::<T>(
                only("start", &start)?,
                only("limit", &limit)?,
                only("delta", &delta)?
            )?])
        })
        .heavy())
    })
}

fn run_range<T: Step>(start: T, limit: T, delta: T) -> Result<Tensor> {
    let mut out = Tensor::scratch::<T>([T::count(start, limit, delta)?])?;
    for (index, slot) in out.values_mut::<T>()?.iter_mut().enumerate() {
        *slot = T::at(start, delta, index);
    }
    Ok(out)
}

/// The one element of an argument; a vector of one passes, as it always did.
fn only<T: Element>(name: &str, tensor: &Tensor) -> Result<T> {
    match (tensor.shape().rank(), tensor.values::<T>()?) {
        (0 | 1, [value]) => Ok(*value),
        _ => Err(invalid!("{name} must be a scalar, not shape {}", tensor.shape())),
    }
}

fn lin_space_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let wide = setup.dtype("Tidx")? == DType::I64;
    for_floats!(setup, setup.dtype("T")?, T => Ok(many(move |_, mut inputs| {
        let (start, stop, num) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        check_scalar("start", &start)?;
        check_scalar("stop", &stop)?;
        check_scalar("num", &num)?;
        let num = if wide { num.to_scalar::<i64>()? } else { num.to_scalar::<i32>()?.into() };
        if num <= 0 {
            return Err(invalid!("Requires num > 0: {num}"));
        }
        Ok(outputs![run_lin_space::<T>(start.to_scalar()?, stop.to_scalar()?, num as usize)?])
    })
    .heavy()))
}

fn check_scalar(name: &str, tensor: &Tensor) -> Result<()> {
    match tensor.shape().rank() {
        0 => Ok(()),
        _ => Err(invalid!("{name} must be a scalar, not shape {}", tensor.shape())),
    }
}

fn run_lin_space<T: Step>(start: T, stop: T, num: usize) -> Result<Tensor> {
    let mut out = Tensor::scratch::<T>([num])?;
    let values = out.values_mut::<T>()?;
    let step = if num > 1 { T::part(start, stop, num - 1) } else { T::default() };
    for (index, slot) in values.iter_mut().enumerate() {
        *slot = T::at(start, step, index);
    }
    if num > 1 {
        // The last element is exactly `stop`, whatever the rounding errors of the steps.
        values[num - 1] = stop;
    }
    Ok(out)
}

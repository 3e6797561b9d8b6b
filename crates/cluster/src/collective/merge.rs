//! The arithmetic of reductions. The order of the operands is that of TensorFlow's ring, so that groups within one task get
//! the same bits as groups over several.

use math::Pool;
use math::elementwise::{cost, map_in_place, zip, zip_in_place_left};
use math::function::{Number, Ordered};
use op::Merge;
use status::{Result, internal};
use tensor::{DType, Element, Tensor, bf16, f16};

/// What a reduction does with values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    pub merge: Merge,
    /// The number by which the result is divided.
    pub divisor: Option<usize>,
}

/// Elements that are merged at a time, so that partial results stay in the cache.
const BLOCK: usize = 16 << 10;

/// `$run` with `T` set to the type of the elements.
macro_rules! for_type {
    ($dtype:expr, $T:ident => $run:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $run
            }
            DType::F64 => {
                type $T = f64;
                $run
            }
            DType::F16 => {
                type $T = f16;
                $run
            }
            DType::BF16 => {
                type $T = bf16;
                $run
            }
            DType::I32 => {
                type $T = i32;
                $run
            }
            DType::I64 => {
                type $T = i64;
                $run
            }
            other => Err(internal!("CollectiveImplementation does not support datatype {}", other.proto_name())),
        }
    };
}

impl Reduction {
    /// Merges what a member received into what it has. `own` is written in place if it is not shared.
    pub fn merge(&self, pool: &Pool, own: Tensor, received: &Tensor) -> Result<Tensor> {
        for_type!(own.dtype(), T => merge::<T>(pool, self.merge, own, received))
    }

    /// Divides the result, if the reduction does that.
    pub fn finish(&self, pool: &Pool, result: Tensor) -> Result<Tensor> {
        match self.divisor {
            Some(divisor) => for_type!(result.dtype(), T => divide::<T>(pool, result, divisor)),
            None => Ok(result),
        }
    }

    /// Merges the same range of several values into a range of the result. The first value is the one that the ring starts
    /// with.
    pub fn merge_all(
        &self,
        pool: &Pool,
        values: &[&Tensor],
        result: &mut Tensor,
        range: std::ops::Range<usize>,
    ) -> Result<()> {
        for_type!(result.dtype(), T => merge_all::<T>(pool, self, values, result, range))
    }
}

/// A function of two elements, chosen before the loop.
macro_rules! for_merge {
    ($merge:expr, $f:ident => $run:expr) => {
        match $merge {
            Merge::Add => {
                let $f = Number::add;
                $run
            }
            Merge::Mul => {
                let $f = Number::mul;
                $run
            }
            Merge::Min => {
                let $f = Ordered::smaller;
                $run
            }
            Merge::Max => {
                let $f = Ordered::larger;
                $run
            }
        }
    };
}

fn merge<T: Element + Ordered>(pool: &Pool, merge: Merge, mut own: Tensor, received: &Tensor) -> Result<Tensor> {
    if own.is_unique() {
        let received = received.values::<T>()?;
        for_merge!(merge, f => zip_in_place_left(pool, cost::SIMPLE, own.values_mut::<T>()?, received, |a: T, b: T| f(a, b)));
        return Ok(own);
    }
    let mut merged = Tensor::scratch_of(own.dtype(), own.shape())?;
    let (own, received) = (own.values::<T>()?, received.values::<T>()?);
    for_merge!(merge, f => zip(pool, cost::SIMPLE, own, received, merged.values_mut::<T>()?, |a: T, b: T| f(a, b)));
    Ok(merged)
}

fn merge_all<T: Element + Ordered + Divide>(
    pool: &Pool,
    reduction: &Reduction,
    values: &[&Tensor],
    result: &mut Tensor,
    range: std::ops::Range<usize>,
) -> Result<()> {
    let values = values.iter().map(|value| Ok(&value.values::<T>()?[range.clone()])).collect::<Result<Vec<_>>>()?;
    let result = &mut result.values_mut::<T>()?[range];
    for (block, result) in result.chunks_mut(BLOCK).enumerate() {
        let (start, len) = (block * BLOCK, result.len());
        match values[..] {
            [only] => result.copy_from_slice(&only[start..][..len]),
            [first, second, ref others @ ..] => {
                let (first, second) = (&first[start..][..len], &second[start..][..len]);
                for_merge!(reduction.merge, f => {
                    zip(pool, cost::SIMPLE, second, first, result, |a: T, b: T| f(a, b));
                    for other in others {
                        let other = &other[start..][..len];
                        zip_in_place_left(pool, cost::SIMPLE, result, other, |b: T, a: T| f(a, b));
                    }
                });
            }
            [] => {}
        }
        if let Some(divisor) = reduction.divisor {
            let divisor = T::of(divisor);
            map_in_place(pool, cost::SIMPLE, result, |value: T| value.div(divisor));
        }
    }
    Ok(())
}

fn divide<T: Element + Number + Divide>(pool: &Pool, mut result: Tensor, divisor: usize) -> Result<Tensor> {
    let divisor = T::of(divisor);
    map_in_place(pool, cost::FUNCTION, result.values_mut::<T>()?, |value: T| value.div(divisor));
    Ok(result)
}

/// A number of members as an element.
trait Divide {
    fn of(count: usize) -> Self;
}

macro_rules! divide_by {
    ($($t:ty: $count:ident => $of:expr;)*) => { $(
        impl Divide for $t {
            fn of($count: usize) -> $t {
                $of
            }
        }
    )* };
}

divide_by! {
    f32: count => count as f32;
    f64: count => count as f64;
    i32: count => count as i32;
    i64: count => count as i64;
    f16: count => f16::from_f32(count as f32);
    bf16: count => bf16::from_f32(count as f32);
}

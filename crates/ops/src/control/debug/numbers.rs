//! What a debugger says about the numbers of a tensor.

use crate::math_ops::cast::converter;
use math::Pool;
use op::{Ctx, StepEnv};
use status::{Result, invalid, unimplemented_op};
use std::sync::Arc;
use tensor::{DType, Tensor};

/// All elements as doubles.
pub(super) fn doubles(tensor: &Tensor) -> Result<Vec<f64>> {
    if tensor.dtype() == DType::F64 {
        return Ok(tensor.values::<f64>()?.to_vec());
    }
    let env = StepEnv::alone(Arc::new(Pool::new(1)));
    let ctx = Ctx { env: &env, frame: 0, iteration: 0 };
    Ok(converter(tensor.dtype(), DType::F64)?(&ctx, tensor.clone())?.values::<f64>()?.to_vec())
}

/// How many are not numbers.
pub(super) fn nan_count(values: &[f64]) -> i64 {
    values.iter().filter(|value| value.is_nan()).count() as i64
}

/// The numbers of elements by kind, and their distribution.
pub(super) struct Summary {
    nan: usize,
    negative_infinite: usize,
    negative: usize,
    zero: usize,
    positive: usize,
    positive_infinite: usize,
    min: f64,
    max: f64,
    mean: f64,
    variance: f64,
}

impl Summary {
    /// Of these numbers; those beyond finite bounds count as infinite.
    pub fn of(values: &[f64], lower: f64, upper: f64) -> Summary {
        let count = |holds: &dyn Fn(f64) -> bool| values.iter().filter(|&&value| holds(value)).count();
        let low = |x: f64| x == f64::NEG_INFINITY || lower.is_finite() && x.is_finite() && x <= lower;
        let high = |x: f64| x == f64::INFINITY || upper.is_finite() && x.is_finite() && !low(x) && x >= upper;
        let inner = |x: f64| !x.is_nan() && !low(x) && !high(x);
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let number = finite().count() as f64;
        // Zero over zero is NaN, which stands for no mean.
        let mean = finite().sum::<f64>() / number;
        Summary {
            nan: count(&f64::is_nan),
            negative_infinite: count(&low),
            negative: count(&|x| inner(x) && x < 0.0),
            zero: count(&|x| inner(x) && x == 0.0),
            positive: count(&|x| inner(x) && x > 0.0),
            positive_infinite: count(&high),
            min: finite().fold(f64::INFINITY, f64::min),
            max: finite().fold(f64::NEG_INFINITY, f64::max),
            mean,
            variance: finite().map(|x| (x - mean) * (x - mean)).sum::<f64>() / number,
        }
    }

    /// True if there are only numbers inside the bounds.
    pub fn is_healthy(&self) -> bool {
        self.nan == 0 && self.negative_infinite == 0 && self.positive_infinite == 0
    }

    /// As the vector that debuggers read.
    pub fn describe(&self, tensor: &Tensor) -> Tensor {
        let counts = [
            1,
            tensor.elements(),
            self.nan,
            self.negative_infinite,
            self.negative,
            self.zero,
            self.positive,
            self.positive_infinite,
        ];
        let mut all: Vec<f64> = counts.iter().map(|&count| count as f64).collect();
        all.extend([self.min, self.max, self.mean, self.variance]);
        all.extend([f64::from(tensor.dtype().number()), tensor.shape().rank() as f64]);
        all.extend(tensor.shape().iter().map(|&dim| dim as f64));
        Tensor::vector(&all)
    }
}

/// The numbers of elements by kind, for the modes of the second version.
pub(super) struct Health {
    negative_infinite: f64,
    positive_infinite: f64,
    nan: f64,
    negative: f64,
    zero: f64,
    positive: f64,
}

impl Health {
    /// Of these numbers.
    pub fn of(values: &[f64]) -> Health {
        let count = |holds: fn(f64) -> bool| values.iter().filter(|&&value| holds(value)).count() as f64;
        Health {
            negative_infinite: count(|x| x == f64::NEG_INFINITY),
            positive_infinite: count(|x| x == f64::INFINITY),
            nan: count(f64::is_nan),
            negative: count(|x| x.is_finite() && x < 0.0),
            zero: count(|x| x == 0.0),
            positive: count(|x| x.is_finite() && x > 0.0),
        }
    }

    /// What a mode says about a tensor with this number.
    pub fn describe(&self, tensor: &Tensor, mode: i64, id: i64, out: DType) -> Result<Vec<f64>> {
        let digits = if out == DType::F64 { 53 } else { 24 };
        if mode != 8 && id > 1 << digits {
            return Err(invalid!(
                "DebugNumericSummaryV2Op requires tensor_id to be less than or equal to (2^{digits}). Given \
                 tensor_id:{id}"
            ));
        }
        let (id, count) = (id as f64, tensor.elements() as f64);
        let (dtype, rank) = (f64::from(tensor.dtype().number()), tensor.shape().rank() as f64);
        let infinite = [self.negative_infinite, self.positive_infinite, self.nan];
        Ok(match mode {
            2 => vec![id, f64::from(u8::from(infinite.iter().any(|&count| count > 0.0)))],
            3 => [&[id, count][..], &infinite].concat(),
            4 => [&[id, -1.0, dtype, rank, count][..], &infinite, &[self.negative, self.zero, self.positive]].concat(),
            5 => [&[id, dtype, rank, count][..], &last_dims(tensor)].concat(),
            8 => {
                let shown = [f64::NEG_INFINITY, f64::INFINITY, f64::NAN];
                infinite.iter().zip(shown).map(|(&count, shown)| if count > 0.0 { shown } else { 0.0 }).collect()
            }
            mode => return Err(unimplemented_op!("Unimplemented tensor debug mode: {mode}")),
        })
    }
}

/// The last six dimensions, with zeros behind them if there are fewer.
fn last_dims(tensor: &Tensor) -> [f64; 6] {
    let dims = tensor.shape();
    let mut last = [0.0; 6];
    last.iter_mut().zip(&dims[dims.len().saturating_sub(6)..]).for_each(|(place, &dim)| *place = dim as f64);
    last
}

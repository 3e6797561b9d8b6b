//! Histogram summaries: counts in buckets whose limits grow by a tenth.

use super::real::Real;
use super::scalar_tag;
use graph::Output;
use io::event::{Histogram, SummaryData, SummaryValue, write_summary};
use op::shapes::scalar;
use op::{Kernel, Op, Setup, binary};
use status::{Result, invalid};
use std::sync::OnceLock;
use tensor::{Bytes, Tensor};

pub(crate) const OPS: &[Op] = rows! {
    "HistogramSummary(tag: string, values: T) -> summary: string; T: realnumbertype = float", scalar,
        histogram_kernel;
};

/// A summary with a histogram of the values.
pub fn histogram_summary(tag: &Output, values: &Output) -> Output {
    values.scope().op("HistogramSummary").input(tag).input(values).output()
}

fn histogram_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let node = setup.name();
    let complaints = [format!("Nan in summary histogram for: {node}"), format!("Infinity in Histogram for: {node}")];
    for_reals!(setup, setup.dtype("T")?, T => {
        Ok(binary(move |_, tag, values| {
            let tag = scalar_tag(&tag, "tags must be scalar")?;
            Ok(Tensor::string(message(tag, &complaints, values.values::<T>()?)?))
        }))
    })
}

/// A Summary message of a histogram; `complaints` are about a number that is none, and one that is infinite.
pub(super) fn message<T: Real>(tag: String, complaints: &[String; 2], values: &[T]) -> Result<Bytes> {
    let data = SummaryData::Histogram(histogram(complaints, values)?);
    write_summary(&[SummaryValue { tag, data, ..SummaryValue::default() }])
}

/// The histogram of finite numbers.
fn histogram<T: Real>(complaints: &[String; 2], values: &[T]) -> Result<Histogram> {
    let mut tally = Tally::default();
    for value in values.iter().map(|value| value.wide()) {
        if !value.is_finite() {
            return Err(invalid!("{}", complaints[usize::from(!value.is_nan())]));
        }
        tally.add(value);
    }
    Ok(tally.histogram())
}

/// Counts numbers in buckets. Sums are taken in order, so that they are TensorFlow's to the last bit.
#[derive(Clone, Debug)]
pub struct Tally {
    counts: Vec<u64>,
    min: f64,
    max: f64,
    num: u64,
    sum: f64,
    sum_squares: f64,
}

impl Default for Tally {
    fn default() -> Tally {
        let counts = vec![0; buckets().limits.len()];
        Tally { counts, min: f64::MAX, max: f64::MIN, num: 0, sum: 0.0, sum_squares: 0.0 }
    }
}

impl Tally {
    /// Counts a finite number.
    pub fn add(&mut self, value: f64) {
        let Buckets { limits, first } = buckets();
        let mut bucket = usize::from(first[key(value)]);
        while bucket + 1 < limits.len() && limits[bucket] <= value {
            bucket += 1;
        }
        self.counts[bucket] += 1;
        // Of two zeros the first is kept, whatever its sign.
        self.min = if value < self.min { value } else { self.min };
        self.max = if value > self.max { value } else { self.max };
        self.num += 1;
        self.sum += value;
        self.sum_squares += value * value;
    }

    /// The numbers so far.
    pub fn histogram(&self) -> Histogram {
        let (bucket_limit, bucket) = joined(&buckets().limits, &self.counts);
        let Tally { min, max, num, sum, sum_squares, .. } = *self;
        Histogram { min, max, num: num as f64, sum, sum_squares, bucket_limit, bucket }
    }
}

/// Limits and counts in which neighbouring empty buckets are one.
fn joined(limits: &[f64], counts: &[u64]) -> (Vec<f64>, Vec<f64>) {
    let (mut kept_limits, mut kept) = (Vec::new(), Vec::<f64>::new());
    for (&limit, &count) in limits.iter().zip(counts) {
        match kept_limits.last_mut() {
            Some(last) if count == 0 && kept.last() == Some(&0.0) => *last = limit,
            _ => {
                kept_limits.push(limit);
                kept.push(count as f64);
            }
        }
    }
    (kept_limits, kept)
}

/// The upper limits of the buckets, with an index to find them quickly.
struct Buckets {
    /// Upper ends, rising; a number that equals one belongs to the next bucket.
    limits: Vec<f64>,
    /// By `key`: the bucket of the least number that has it.
    first: Vec<u16>,
}

/// The low bits of a double that are dropped to get a key: a key has the sign, the exponent and an eighth of an
/// octave, in which there are at most two limits.
const DROPPED: u32 = 49;

fn key(value: f64) -> usize {
    (value.to_bits() >> DROPPED) as usize
}

fn buckets() -> &'static Buckets {
    static BUCKETS: OnceLock<Buckets> = OnceLock::new();
    BUCKETS.get_or_init(|| {
        let limits = limits();
        let first = (0..1u64 << (64 - DROPPED)).map(|key| {
            let bits = key << DROPPED;
            // The larger the bits of a negative number, the less it is.
            let least = f64::from_bits(if bits >> 63 == 1 { bits | ((1 << DROPPED) - 1) } else { bits });
            limits.partition_point(|&limit| limit <= least).min(limits.len() - 1) as u16
        });
        Buckets { first: first.collect(), limits }
    })
}

fn limits() -> Vec<f64> {
    let rising = std::iter::successors(Some(1.0e-12), |limit| Some(limit * 1.1));
    let mut positive: Vec<f64> = rising.take_while(|&limit| limit < 1.0e20).collect();
    positive.push(f64::MAX);
    let negative = positive.iter().rev().map(|limit| -limit);
    negative.chain([0.0]).chain(positive.iter().copied()).collect()
}

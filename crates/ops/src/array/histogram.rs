//! HistogramFixedWidth and Bucketize: the interval of each number.

use super::index::{from_places, integer};
use super::nodes;
use graph::Output;
use op::shapes::unchanged;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs, unary};
use status::{Result, exhausted, invalid};
use tensor::{DType, Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "HistogramFixedWidth(values: T, value_range: T, nbins: int32) -> out: dtype; T: {int32, int64, float, double}; \
              dtype: {int32, int64} = int32",
        shape: histogram_shape,
        grad: Grad::Stop,
        kernel: histogram_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Bucketize(input: T) -> output: int32; T: {int32, int64, float, double}; boundaries: list(float)",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: bucketize_kernel,
        facts: PLAIN,
    },
];

/// How many values fall into each of `bins` equal intervals of `range`; those outside count for the outermost.
pub fn histogram_fixed_width(values: &Output, range: &Output, bins: i32) -> Output {
    let bins = nodes::int(values.scope(), bins);
    values.scope().op("HistogramFixedWidth").input(values).input(range).input(&bins).output()
}

/// For each value the number of boundaries, which rise, that are not above it.
pub fn bucketize(input: &Output, boundaries: &[f32]) -> Output {
    input.scope().op("Bucketize").input(input).attr("boundaries", boundaries.to_vec()).output()
}

fn histogram_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    query.inputs[1].merge(&PartialShape::new(&[2]))?;
    let bins = query.constants[2].as_ref().and_then(|bins| integer(bins, || invalid!("not a scalar")).ok());
    match bins {
        Some(bins) if bins <= 0 => Err(invalid!("Requires nbins > 0: {bins}")),
        bins => Ok(vec![PartialShape::new(&[bins.unwrap_or(-1)])]),
    }
}

/// A number as a double.
trait Wide: Element + PartialOrd + std::fmt::Display {
    fn wide(self) -> f64;
}

macro_rules! wide {
    ($($t:ty),*) => {$(
        impl Wide for $t {
            fn wide(self) -> f64 {
                self as f64
            }
        }
    )*};
}

wide!(f32, f64, i32, i64);

fn histogram_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("dtype")?;
    for_types!(setup, setup.dtype("T")?, [i32, i64, f32, f64], T => {
        Ok(many(move |_, inputs| run_histogram::<T>(inputs, dtype)))
    })
}

fn run_histogram<T: Wide>(mut inputs: Inputs, dtype: DType) -> Result<Outputs> {
    let (values, range, bins) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    if range.shape().rank() != 1 {
        return Err(invalid!("value_range should be a vector."));
    }
    let &[low, high] = range.values::<T>()? else {
        return Err(invalid!("value_range should be a vector of 2 elements."));
    };
    let bins = integer(&bins, || invalid!("nbins should be a scalar."))?;
    if low.partial_cmp(&high) != Some(std::cmp::Ordering::Less) {
        return Err(invalid!("value_range should satisfy value_range[0] < value_range[1], but got '[{low}, {high}]'"));
    }
    let Some(count) = usize::try_from(bins).ok().filter(|&bins| bins > 0) else {
        return Err(invalid!("nbins should be a positive number, but got '{bins}'"));
    };
    let values = values.values::<T>()?;
    let mut counts: Vec<usize> = Vec::new();
    let out_of_memory = |_| exhausted!("OOM when allocating tensor with shape[{bins}] and type {dtype}");
    counts.try_reserve_exact(count).map_err(out_of_memory)?;
    counts.resize(count, 0);
    if count == 1 {
        counts[0] = values.len();
        return Ok(outputs![from_places(&counts, [count], dtype)?]);
    }
    if values.iter().any(|value| value.partial_cmp(value).is_none()) {
        return Err(invalid!("Histogram values must not contain NaN"));
    }
    let step = high.wide() / count as f64 - low.wide() / count as f64;
    for &value in values {
        let value = if value < low { low } else { value };
        let value = if value > high { high } else { value };
        let bin = ((value.wide() - low.wide()) / step).min((count - 1) as f64);
        counts[bin as usize] += 1;
    }
    Ok(outputs![from_places(&counts, [count], dtype)?])
}

fn bucketize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let boundaries = setup.list("boundaries")?.floats.clone();
    if boundaries.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(invalid!("Expected sorted boundaries"));
    }
    for_types!(setup, setup.dtype("T")?, [i32, i64, f32, f64], T => {
        Ok(unary(move |_, input| run_bucketize::<T>(&input, &boundaries)))
    })
}

fn run_bucketize<T: Wide>(input: &Tensor, boundaries: &[f32]) -> Result<Tensor> {
    let mut output = Tensor::scratch::<i32>(input.shape())?;
    for (bucket, value) in output.values_mut::<i32>()?.iter_mut().zip(input.values::<T>()?) {
        let value = value.wide();
        let below = |&boundary: &f32| value.partial_cmp(&f64::from(boundary)) != Some(std::cmp::Ordering::Less);
        *bucket = boundaries.partition_point(below) as i32;
    }
    Ok(output)
}

//! RaggedRange: one range of numbers for each row.

use crate::array::index::{from_places, largest};
use graph::Output;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{DType, Element, PartialShape, Tensor, bf16};

pub(crate) const OPS: &[Op] = &[Op {
    def: "RaggedRange(starts: T, limits: T, deltas: T) -> rt_nested_splits: Tsplits, rt_dense_values: T; \
          T: {bfloat16, float, double, int32, int64} = int32; Tsplits: {int32, int64} = int64",
    shape: range_shape,
    grad: Grad::Stop,
    kernel,
    facts: PLAIN,
}];

/// Numbers from each start to its limit by its delta: where rows end, and the numbers of all rows.
pub fn ragged_range(starts: &Output, limits: &Output, deltas: &Output) -> (Output, Output) {
    let node = starts.scope().op("RaggedRange").input(starts).input(limits).input(deltas).node();
    (node.output(0), node.output(1))
}

fn range_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let vectors = query.inputs.iter().filter_map(|input| input.dims()).find(|dims| dims.len() == 1);
    let known = query.inputs.iter().all(|input| input.rank().is_some());
    let splits = match (vectors, known) {
        (Some([rows]), _) if *rows >= 0 => rows + 1,
        (None, true) => 2,
        _ => -1,
    };
    Ok(vec![PartialShape::new(&[splits]), PartialShape::of_rank(1)])
}

/// A number of which ranges can be made.
trait Stepped: Element + PartialOrd {
    /// The number of steps from `start` to `limit`; `delta` is not zero and points towards `limit`.
    fn steps(start: Self, limit: Self, delta: Self) -> f64;
    fn step(self, delta: Self) -> Self;
}

macro_rules! stepped {
    ($($t:ty, $steps:expr, $step:expr;)*) => {$(
        impl Stepped for $t {
            fn steps(start: $t, limit: $t, delta: $t) -> f64 {
                $steps(start, limit, delta)
            }

            fn step(self, delta: $t) -> $t {
                $step(self, delta)
            }
        }
    )*};
}

fn whole_steps(start: i64, limit: i64, delta: i64) -> f64 {
    limit.abs_diff(start).div_ceil(delta.unsigned_abs()) as f64
}

stepped! {
    i32, |s: i32, l: i32, d: i32| whole_steps(s.into(), l.into(), d.into()), i32::wrapping_add;
    i64, whole_steps, i64::wrapping_add;
    f32, |s: f32, l: f32, d: f32| ((l - s) / d).abs().ceil().into(), |a: f32, b: f32| a + b;
    f64, |s: f64, l: f64, d: f64| ((l - s) / d).abs().ceil(), |a: f64, b: f64| a + b;
    bf16, |s: bf16, l: bf16, d: bf16| ((l - s) / d).to_f64().abs().ceil(), |a: bf16, b: bf16| a + b;
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let splits = setup.dtype("Tsplits")?;
    let kernel = for_types!(setup, setup.dtype("T")?, [i32, i64, f32, f64, bf16], T => {
        Ok(many(move |_, inputs| run::<T>(inputs, splits)))
    });
    Ok(kernel?.heavy())
}

fn run<T: Stepped>(mut inputs: Inputs, splits_type: DType) -> Result<Outputs> {
    let all = inputs.tensors(0, 3)?;
    for (tensor, name) in all.iter().zip(["starts", "limits", "deltas"]) {
        if tensor.shape().rank() > 1 {
            return Err(invalid!("{name} must be a scalar or vector"));
        }
    }
    let mut sizes = all.iter().filter(|tensor| tensor.shape().rank() == 1).map(Tensor::elements);
    let rows = sizes.next();
    if sizes.any(|size| Some(size) != rows) {
        return Err(invalid!("starts, limits, and deltas must have the same shape"));
    }
    let at = |input: usize, row: usize| -> Result<T> {
        let values = all[input].values::<T>()?;
        Ok(values[if all[input].shape().rank() == 0 { 0 } else { row }])
    };
    let (highest, mut splits, mut total) = (largest(splits_type), vec![0], 0_i64);
    for row in 0..rows.unwrap_or(1) {
        let size = row_size(at(0, row)?, at(1, row)?, at(2, row)?, highest)?;
        if size > highest - total {
            return Err(invalid!(
                "The total range size overflowed. Consider using int64 instead of int32 for row_splits_dtype."
            ));
        }
        total += size;
        splits.push(total as usize);
    }
    let mut values = Tensor::scratch::<T>([total as usize])?;
    let numbers = values.values_mut::<T>()?;
    for row in 0..splits.len() - 1 {
        let (mut value, delta) = (at(0, row)?, at(2, row)?);
        for number in &mut numbers[splits[row]..splits[row + 1]] {
            *number = value;
            value = value.step(delta);
        }
    }
    Ok(outputs![from_places(&splits, [splits.len()], splits_type)?, values])
}

fn row_size<T: Stepped>(start: T, limit: T, delta: T, highest: i64) -> Result<i64> {
    let zero = T::default();
    if delta == zero {
        return Err(invalid!("Requires delta != 0"));
    }
    if (delta > zero && limit < start) || (delta < zero && limit > start) {
        return Ok(0);
    }
    let steps = T::steps(start, limit, delta);
    if steps.is_nan() || steps > highest as f64 {
        return Err(invalid!("Requires ((limit - start) / delta) <= {highest}"));
    }
    Ok(steps as i64)
}

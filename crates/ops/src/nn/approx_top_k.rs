//! ApproxTopK: the largest or smallest elements along an axis. Processors find all of them, in order.

use crate::array::args::{around, to_axis};
use op::{Grad, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{Element, PartialShape, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[Op {
    def: "ApproxTopK(input: T) -> values: T, indices: int32; k: int >= 0; reduction_dimension: int = -1; \
          recall_target: float = 0.95; is_max_k: bool = true; reduction_input_size_override: int = -1; \
          aggregate_to_topk: bool = true; T: {half, bfloat16, float}",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let rank = query.inputs[0].rank().map_or(PartialShape::unknown(), PartialShape::of_rank);
    Ok(vec![rank; query.outputs])
}

/// What is looked for.
#[derive(Clone, Copy)]
struct Search {
    count: usize,
    axis: i64,
    largest: bool,
    /// Set if the result is a longer list of candidates, from which the caller selects.
    partial: Option<Partial>,
}

/// A search among a part of the elements, whose result is joined with others.
#[derive(Clone, Copy)]
pub(crate) struct Partial {
    /// The share of the right elements that must be found.
    pub recall: f32,
    /// The number of elements of all parts, if it was given.
    pub whole: Option<usize>,
}

impl Partial {
    /// How many candidates TensorFlow returns for `size` elements: all, or a number of tiles of a TPU.
    pub fn candidates(&self, count: usize, size: usize, rank: usize) -> usize {
        let tile = if rank == 1 { 1024 } else { 128 };
        if size <= tile || self.recall == 1.0 {
            return size;
        }
        if count == 1 {
            return tile;
        }
        let wanted = ((1.0 - count as f64) / f64::from(self.recall).ln()) as usize;
        let kept = wanted.max(tile).min(size);
        let Some(halvings) = (self.whole.unwrap_or(size) / kept).checked_ilog2().filter(|&halvings| halvings > 0)
        else {
            return size;
        };
        let halvings = halvings.min((size / tile).next_power_of_two().ilog2());
        size.div_ceil(tile).div_ceil(1 << halvings) * tile
    }
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let count = usize::try_from(setup.int("k")?).map_err(|_| invalid!("Attr k must be at least 0"))?;
    let recall = setup.float("recall_target")?;
    if !(recall > 0.0 && recall <= 1.0) {
        return Err(invalid!("Invalid recall target: {recall}. Valid value range in : [0, 1.0]."));
    }
    let partial = match setup.bool("aggregate_to_topk")? {
        true => None,
        false => Some(Partial { recall, whole: usize::try_from(setup.int("reduction_input_size_override")?).ok() }),
    };
    let search = Search { count, axis: setup.int("reduction_dimension")?, largest: setup.bool("is_max_k")?, partial };
    match setup.dtype("T")? {
        tensor::DType::F32 => Ok(many(move |_, mut inputs| search.run::<f32>(&inputs.tensor(0)?, |x| x))),
        tensor::DType::F16 => Ok(many(move |_, mut inputs| search.run::<f16>(&inputs.tensor(0)?, f16::to_f32))),
        tensor::DType::BF16 => Ok(many(move |_, mut inputs| search.run::<bf16>(&inputs.tensor(0)?, bf16::to_f32))),
        _ => Err(setup.no_kernel()),
    }
}

impl Search {
    fn run<T: Element>(&self, input: &Tensor, float: impl Fn(T) -> f32) -> Result<Outputs> {
        let mut shape = input.shape().clone();
        let Some(axis) = to_axis(self.axis, shape.rank()) else {
            return Err(invalid!("reduction_dimension must be in [-{0}, {0}), but got {1}", shape.rank(), self.axis));
        };
        let [before, size, after] = around(&shape, axis);
        if self.count > size {
            return Err(invalid!("input must have last dimension >= k = {} but was {size}", self.count));
        }
        let count = match self.partial {
            Some(partial) => partial.candidates(self.count, size, shape.rank()).min(size),
            None => self.count,
        };
        shape.dims_mut()[axis] = count;
        let (mut values, mut indices) = (Tensor::scratch::<T>(&shape)?, Tensor::scratch::<i32>(&shape)?);
        if values.elements() > 0 {
            let (all, best) = (input.values::<T>()?, values.values_mut::<T>()?);
            let places = indices.values_mut::<i32>()?;
            for line in 0..before * after {
                let (outer, inner) = (line / after, line % after);
                let at = |index: usize| all[(outer * size + index) * after + inner];
                for (rank, index) in self.sorted(size, count, |index| float(at(index))).into_iter().enumerate() {
                    let place = (outer * count + rank) * after + inner;
                    (best[place], places[place]) = (at(index), index as i32);
                }
            }
        }
        Ok(outputs![values, indices])
    }

    /// The indices of the first `count` elements, equal ones in their order.
    fn sorted(&self, size: usize, count: usize, at: impl Fn(usize) -> f32) -> Vec<usize> {
        let mut order: Vec<usize> = (0..size).collect();
        let order_of = |&a: &usize, &b: &usize| at(a).total_cmp(&at(b));
        match self.largest {
            true => order.sort_by(|a, b| order_of(b, a)),
            false => order.sort_by(order_of),
        }
        order.truncate(count);
        order
    }
}

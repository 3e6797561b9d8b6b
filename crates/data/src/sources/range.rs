//! RangeDataset: the numbers from a start to a limit.

use crate::attrs::{DATASET, dataset_kernel, scalar, spec};
use crate::dataset::PendingElement;
use crate::iterate::next_mapped;
use crate::{
    Cardinality, Dataset, Element, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use smallvec::smallvec;
use status::{Result, invalid, out_of_range};
use std::sync::Arc;
use std::task::Poll;
use tensor::{DType, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[Op {
    def: "RangeDataset(start: int64, stop: int64, step: int64) -> handle: variant; output_types: list(type) >= 1; \
          output_shapes: list(shape) >= 1; metadata: string = \"\"; replicate_on_split: bool = false; stateful",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        let (start, stop) = (scalar(inputs, 0, "start")?, scalar(inputs, 1, "stop")?);
        let step = scalar(inputs, 2, "step")?;
        if step == 0 {
            return Err(invalid!("step must be a non-zero integer."));
        }
        let dtype = spec.types.first().copied().unwrap_or(DType::I64);
        number(0, dtype)?; // an error of the op, not of the first element
        Ok(Range { start, step, count: count(start, stop, step), spec: spec.clone() })
    })
}

struct Range {
    start: i64,
    step: i64,
    count: u64,
    spec: Spec,
}

impl Range {
    /// The number at a position below `count`.
    fn at(&self, position: u64) -> Result<Element> {
        let value = i128::from(self.start) + i128::from(position) * i128::from(self.step);
        Ok(smallvec![number(value as i64, self.spec.types[0])?])
    }
}

/// How many numbers there are; for all arguments at most 2^64 - 1.
fn count(start: i64, stop: i64, step: i64) -> u64 {
    let (distance, step) = match step > 0 {
        true => (i128::from(stop) - i128::from(start), i128::from(step)),
        false => (i128::from(start) - i128::from(stop), -i128::from(step)),
    };
    if distance <= 0 { 0 } else { ((distance + step - 1) / step) as u64 }
}

/// An integer as a scalar of a type.
fn number(value: i64, dtype: DType) -> Result<Tensor> {
    Ok(match dtype {
        DType::I64 => Tensor::scalar(value),
        DType::I32 => Tensor::scalar(value as i32),
        DType::I16 => Tensor::scalar(value as i16),
        DType::I8 => Tensor::scalar(value as i8),
        DType::U64 => Tensor::scalar(value as u64),
        DType::U32 => Tensor::scalar(value as u32),
        DType::U16 => Tensor::scalar(value as u16),
        DType::U8 => Tensor::scalar(value as u8),
        DType::F64 => Tensor::scalar(value as f64),
        DType::F32 => Tensor::scalar(value as f32),
        DType::F16 => Tensor::scalar(f16::from_f64(value as f64)),
        DType::BF16 => Tensor::scalar(bf16::from_f64(value as f64)),
        other => return Err(invalid!("Unsupported data type: {other}")),
    })
}

impl Dataset for Range {
    fn kind(&self) -> &'static str {
        "Range"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(RangeIterator { dataset: self, position: 0, mapped: 0, prefix: place.prefix.clone() }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Finite(self.count)
    }

    fn check_random_indexing(&self, _: Vec<Result<()>>) -> Result<()> {
        Ok(())
    }

    fn element_at(&self, _: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        if index as u64 >= self.count {
            return Err(out_of_range!("Index out of range [0, {}):{index}", self.count));
        }
        let element = self.at(index as u64)?;
        Ok(Box::new(move |_| Poll::Ready(Ok(element.clone()))))
    }
}

struct RangeIterator {
    dataset: Arc<Range>,
    position: u64,
    /// The next position that a global shuffle maps.
    mapped: usize,
    prefix: Arc<str>,
}

impl RangeIterator {
    fn next(&mut self, ctx: &PollContext<'_>) -> Result<Option<Element>> {
        let position = match &ctx.index_mapper {
            None => Some(self.position),
            Some(map) => next_mapped(map, &mut self.mapped)?.map(|position| position as u64),
        };
        let Some(position) = position.filter(|&position| position < self.dataset.count) else {
            return Ok(None);
        };
        self.position += u64::from(ctx.index_mapper.is_none());
        self.dataset.at(position).map(Some)
    }
}

impl Iterate for RangeIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        Poll::Ready(self.next(ctx))
    }

    /// TensorFlow saves the next number.
    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let next = i128::from(self.dataset.start) + i128::from(self.position) * i128::from(self.dataset.step);
        writer.int(&self.prefix, "next", next as i64);
        writer.int(&self.prefix, "global_shuffle_iterator_next_index", self.mapped as i64);
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let next = reader.int(&self.prefix, "next")?;
        self.position = count(self.dataset.start, next, self.dataset.step);
        self.mapped = reader.count(&self.prefix, "global_shuffle_iterator_next_index").unwrap_or(0);
        Ok(())
    }
}

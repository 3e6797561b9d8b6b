//! SlidingWindowDataset: windows over the elements, stacked.

use super::saved::{read_input, read_list, write_input, write_list};
use super::sliding::{Slide, positive};
use super::stack::stacked;
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::Result;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, ready};
use tensor::PartialShape;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SlidingWindowDataset(input_dataset: variant, window_size: int64, window_shift: int64, \
              window_stride: int64) -> handle: variant; drop_remainder: bool = true; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalSlidingWindowDataset(input_dataset: variant, window_size: int64, window_shift: int64, \
              window_stride: int64) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let drops_remainder = setup.find("drop_remainder").is_none() || setup.bool("drop_remainder")?;
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let slide = Slide {
            size: positive(scalar(inputs, 1, "window_size")?, "Window size")?,
            shift: positive(scalar(inputs, 2, "window_shift")?, "Window shift")?,
            stride: positive(scalar(inputs, 3, "window_stride")?, "window_stride")?,
            drops_remainder,
        };
        let Spec { types, shapes } = input.spec().clone();
        Ok(SlidingWindow { input, slide, spec: Spec { types, shapes: shapes.iter().map(with_rows).collect() } })
    })
}

/// The shape with a first dimension of unknown size.
fn with_rows(shape: &PartialShape) -> PartialShape {
    let Some(dims) = shape.dims() else { return PartialShape::unknown() };
    PartialShape::new(&[&[-1], dims].concat())
}

struct SlidingWindow {
    input: DatasetRef,
    slide: Slide,
    spec: Spec,
}

impl Dataset for SlidingWindow {
    fn kind(&self) -> &'static str {
        "Slide"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(SlidingWindowIterator {
            input: place.input(&self.input)?,
            buffer: VecDeque::new(),
            finished: None,
            slide: self.slide.clone(),
            prefix: place.prefix.clone(),
        }))
    }

    /// As TensorFlow counts: windows that are too short are among them unless they are left out.
    fn cardinality(&self) -> Cardinality {
        let Slide { shift, drops_remainder, .. } = self.slide;
        self.input.cardinality().map(|count| if drops_remainder { count / shift } else { count.div_ceil(shift) })
    }
}

struct SlidingWindowIterator {
    input: Input,
    buffer: VecDeque<Element>,
    /// A window, while elements that belong to no window are passed over: how many are left.
    finished: Option<(Vec<Element>, u64)>,
    slide: Slide,
    prefix: Arc<str>,
}

impl SlidingWindowIterator {
    fn poll_fill(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        while (self.buffer.len() as u64) < self.slide.span() {
            match ready!(self.input.poll_next(ctx))? {
                Some(element) => self.buffer.push_back(element),
                None => break,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn take_window(&mut self) -> (Vec<Element>, u64) {
        let elements = self.buffer.iter().step_by(self.slide.step()).cloned().collect();
        let shifted = usize::try_from(self.slide.shift).unwrap_or(usize::MAX).min(self.buffer.len());
        self.buffer.drain(..shifted);
        (elements, self.slide.shift - shifted as u64)
    }

    fn poll_discard(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        let Some((_, left)) = &mut self.finished else { return Poll::Ready(Ok(())) };
        while *left > 0 && !self.input.has_ended() {
            ready!(self.input.poll_next(ctx))?;
            *left -= 1;
        }
        Poll::Ready(Ok(()))
    }
}

impl Iterate for SlidingWindowIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.finished.is_none() {
            ready!(self.poll_fill(ctx))?;
            let is_short = (self.buffer.len() as u64) < self.slide.span();
            if self.buffer.is_empty() || self.slide.drops_remainder && is_short {
                return Poll::Ready(Ok(None));
            }
            self.finished = Some(self.take_window());
        }
        ready!(self.poll_discard(ctx))?;
        Poll::Ready(self.finished.take().map(|(elements, _)| stacked(elements)).transpose())
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        write_input(writer, prefix, &self.input)?;
        writer.int(prefix, "buffer_size", self.buffer.len() as i64);
        for (index, element) in self.buffer.iter().enumerate() {
            writer.int(prefix, &format!("buffer[{index}]_size"), element.len() as i64);
            write_list(writer, prefix, &format!("buffer[{index}]"), element);
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.prefix.clone();
        read_input(reader, &prefix, &mut self.input)?;
        let element = |index| {
            let count = reader.count(&prefix, &format!("buffer[{index}]_size"))?;
            read_list(reader, &prefix, &format!("buffer[{index}]"), count)
        };
        self.buffer = (0..reader.count(&prefix, "buffer_size")?).map(element).collect::<Result<_>>()?;
        Ok(())
    }
}

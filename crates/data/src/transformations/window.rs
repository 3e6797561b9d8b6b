//! WindowDataset: windows over the elements, as datasets.

use super::saved::{read_list, write_list};
use super::sliding::{Slide, positive};
use super::window_op::window;
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar};
use crate::budget::{cost, cost_of};
use crate::dataset::only;
use crate::memory::{Held, LEAST_BYTES, check_fits};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader,
    StateWriter, dataset_tensor,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use smallvec::smallvec;
use status::{Code, Error, Result, internal};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, ready};
use tensor::{DType, PartialShape};

pub(crate) const OPS: &[Op] = &[Op {
    def: "WindowDataset(input_dataset: variant, size: int64, shift: int64, stride: int64, drop_remainder: bool) -> \
          handle: variant; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = \"\"",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dataset_kernel(setup, |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let slide = Slide {
            size: positive(scalar(inputs, 1, "size")?, "Window size")?,
            shift: positive(scalar(inputs, 2, "shift")?, "Window shift")?,
            stride: positive(scalar(inputs, 3, "stride")?, "Window stride")?,
            drops_remainder: scalar(inputs, 4, "drop_remainder")?,
        };
        let spec = Spec {
            types: vec![DType::VARIANT; input.spec().types.len()],
            shapes: vec![PartialShape::scalar(); input.spec().shapes.len()],
        };
        Ok(WindowDataset { input, slide, spec })
    })
}

#[derive(Clone)]
struct WindowDataset {
    input: DatasetRef,
    slide: Slide,
    spec: Spec,
}

impl Dataset for WindowDataset {
    fn kind(&self) -> &'static str {
        "Window"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(WindowDataset { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        check_fits("Window", self.slide.span(), LEAST_BYTES, &self.input)?;
        Ok(Box::new(WindowIterator {
            memory: Held::new("Window", self.slide.span()),
            input: place.input(&self.input)?,
            buffer: VecDeque::new(),
            finished: None,
            dataset: self,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().map(|count| self.slide.windows(count))
    }
}

/// A window ends early after this number of errors in a row.
const MOST_ERRORS: usize = 128;

struct WindowIterator {
    input: Input,
    /// The elements of this window and of those after it that have arrived, and errors in their places.
    buffer: VecDeque<Result<Element>>,
    memory: Held,
    /// A window, while elements that belong to no window are passed over: how many are left.
    finished: Option<(Result<Element>, u64)>,
    dataset: Arc<WindowDataset>,
    prefix: Arc<str>,
}

impl WindowIterator {
    fn poll_fill(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        while (self.buffer.len() as u64) < self.dataset.slide.span() && !self.input.has_ended() {
            match ready!(self.input.poll_next(ctx)) {
                Ok(None) => {}
                Ok(Some(element)) => self.add(element)?,
                Err(error) if ctx.pipeline.cancel().is_cancelled() => return Poll::Ready(Err(self.failed(error))),
                Err(error) => {
                    self.buffer.push_back(Err(error));
                    if self.has_only_errors() {
                        break;
                    }
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn add(&mut self, element: Element) -> Result<()> {
        self.memory.add(cost(&element)).map_err(|error| self.failed(error))?;
        self.buffer.push_back(Ok(element));
        Ok(())
    }

    /// Gives the memory back: the sequence ends.
    fn failed(&mut self, error: Error) -> Error {
        self.buffer = VecDeque::new();
        self.input.end();
        error
    }

    /// True if the last entries are errors, and very many: an input that has failed may return errors without end.
    fn has_only_errors(&self) -> bool {
        self.buffer.len() >= MOST_ERRORS && self.buffer.iter().rev().take(MOST_ERRORS).all(Result::is_err)
    }

    /// The window of the elements in the buffer; it moves on by the shift.
    fn take_window(&mut self) -> (Result<Element>, u64) {
        let slide = &self.dataset.slide;
        let elements = self.buffer.iter().step_by(slide.step()).cloned().collect::<Result<Vec<_>>>();
        let is_cut = (self.buffer.len() as u64) < slide.span() && !self.input.has_ended();
        let shifted = usize::try_from(slide.shift).unwrap_or(usize::MAX).min(self.buffer.len());
        let bytes: usize = self.buffer.drain(..shifted).map(|entry| cost_of(&entry)).sum();
        self.memory.remove(bytes);
        (elements.and_then(|elements| self.windows(&elements)), if is_cut { 0 } else { slide.shift - shifted as u64 })
    }

    /// One dataset for each component.
    fn windows(&self, elements: &[Element]) -> Result<Element> {
        let spec = self.dataset.input.spec();
        let components = spec.types.iter().zip(&spec.shapes).enumerate();
        components
            .map(|(index, (&dtype, shape))| {
                let component = |element: &Element| element.get(index).cloned().map(|tensor| smallvec![tensor]);
                let column = elements.iter().map(component).collect::<Option<Vec<Element>>>();
                let column = column.ok_or_else(|| internal!("an element has no component {index}"))?;
                dataset_tensor(window(column, Spec { types: vec![dtype], shapes: vec![shape.clone()] }))
            })
            .collect()
    }

    fn poll_discard(&mut self, ctx: &mut PollContext<'_>) -> Poll<()> {
        let Some((_, left)) = &mut self.finished else { return Poll::Ready(()) };
        while *left > 0 && !self.input.has_ended() && !ctx.pipeline.cancel().is_cancelled() {
            let _ = ready!(self.input.poll_next(ctx)); // as in TensorFlow, their errors do not matter
            *left -= 1;
        }
        Poll::Ready(())
    }

    fn save_entry(&self, writer: &mut StateWriter, index: usize, entry: &Result<Element>) {
        let (prefix, key) = (&*self.prefix, format!("buffer[{index}]"));
        let element = entry.as_ref().map(|element| element.as_slice()).unwrap_or_default();
        writer.int(prefix, &format!("{key}.code"), entry.as_ref().err().map_or(0, |error| error.code as i64));
        if let Err(error) = entry {
            writer.string(prefix, &format!("{key}.error_message"), error.message.clone());
        }
        writer.int(prefix, &format!("{key}.size"), element.len() as i64);
        write_list(writer, prefix, &key, element);
    }

    fn restored_entry(&self, reader: &StateReader, index: usize) -> Result<Result<Element>> {
        let (prefix, key) = (&*self.prefix, format!("buffer[{index}]"));
        let code = reader.int(prefix, &format!("{key}.code"))?;
        if code != 0 {
            let message = reader.string(prefix, &format!("{key}.error_message"))?;
            let code = i32::try_from(code).map_or(Code::Unknown, Code::from_number);
            return Ok(Err(Error::new(code, String::from_utf8_lossy(&message))));
        }
        read_list(reader, prefix, &key, reader.count(prefix, &format!("{key}.size"))?).map(Ok)
    }
}

impl Iterate for WindowIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.finished.is_none() {
            ready!(self.poll_fill(ctx))?;
            let is_short = self.input.has_ended() && (self.buffer.len() as u64) < self.dataset.slide.span();
            if self.buffer.is_empty() || self.dataset.slide.drops_remainder && is_short {
                return Poll::Ready(Ok(None));
            }
            self.finished = Some(self.take_window());
        }
        ready!(self.poll_discard(ctx));
        Poll::Ready(self.finished.take().map(|(window, _)| window).transpose())
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        if self.input.has_ended() {
            writer.string(&self.prefix, "input_impl_empty", "");
        }
        self.input.save_present(writer)?;
        writer.int(&self.prefix, "buffer_size", self.buffer.len() as i64);
        for (index, entry) in self.buffer.iter().enumerate() {
            self.save_entry(writer, index, entry);
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        super::saved::read_input(reader, &self.prefix, &mut self.input)?;
        let count = reader.count(&self.prefix, "buffer_size")?;
        self.buffer = (0..count).map(|index| self.restored_entry(reader, index)).collect::<Result<_>>()?;
        Ok(())
    }
}

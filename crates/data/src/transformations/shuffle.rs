//! ShuffleDataset and ShuffleAndRepeatDataset in all versions: elements in the random order that follows from seeds.

use super::seed_generator::{Samples, SeedGenerator, seeds};
use crate::attrs::{DATASET, input_dataset, scalar, seeded_kernel};
use crate::budget::cost;
use crate::dataset::{PendingElement, only};
use crate::memory::{Held, LEAST_BYTES, check_fits};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter,
};
use op::shapes;
use op::{Grad, Home, Inputs, Kernel, Op, Setup};
use status::{Result, invalid, out_of_range};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ShuffleDataset(input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64) -> handle: variant; \
              reshuffle_each_iteration: bool = true; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| shuffle_kernel(setup, Some(2), None),
        facts: DATASET,
    },
    Op {
        def: "ShuffleDatasetV2(input_dataset: variant, buffer_size: int64, seed_generator: resource) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = \"\"; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| shuffle_kernel(setup, None, Some(2)),
        facts: DATASET,
    },
    Op {
        def: "ShuffleDatasetV3(input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64, \
              seed_generator: resource) -> handle: variant; reshuffle_each_iteration: bool = true; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = \"\"; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| shuffle_kernel(setup, Some(2), Some(4)),
        facts: DATASET,
    },
    Op {
        def: "ShuffleAndRepeatDataset(input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64, \
              count: int64) -> handle: variant; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              reshuffle_each_iteration: bool = true; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| repeat_kernel(setup, None),
        facts: DATASET,
    },
    Op {
        def: "ShuffleAndRepeatDatasetV2(input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64, \
              count: int64, seed_generator: resource) -> handle: variant; reshuffle_each_iteration: bool = true; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = \"\"; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| repeat_kernel(setup, Some(5)),
        facts: DATASET,
    },
];

const KIND: &str = "Shuffle";
const REPEATING_KIND: &str = "ShuffleAndRepeat";

/// The kernel of an op whose seeds begin at one input, and whose seed generator is in another, where it has them.
fn shuffle_kernel(setup: &Setup<'_>, first_seed: Option<usize>, generator: Option<usize>) -> Result<Kernel> {
    let home = Home::of(setup);
    let reshuffles = first_seed.is_none() || setup.bool("reshuffle_each_iteration")?;
    let seeds_at = first_seed.into_iter().flat_map(|first| [first, first + 1]).chain(generator).collect();
    seeded_kernel(setup, seeds_at, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let size = buffer_size(inputs)?;
        let make = |inputs: &mut Inputs| match first_seed {
            Some(first) => Ok(SeedGenerator::new(seeds(inputs, first)?, reshuffles)),
            None => Ok(SeedGenerator::random()),
        };
        let generator = seed_generator(&home, inputs, generator, make)?;
        Ok(Shuffle::new(KIND, input, size, Some(1), generator))
    })
}

fn repeat_kernel(setup: &Setup<'_>, generator: Option<usize>) -> Result<Kernel> {
    let home = Home::of(setup);
    let reshuffles = setup.bool("reshuffle_each_iteration")?;
    seeded_kernel(setup, [2, 3].into_iter().chain(generator).collect(), move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let size = buffer_size(inputs)?;
        let given = seeds(inputs, 2)?;
        let epochs = match scalar::<i64>(inputs, 4, "count")? {
            -1 => None,
            count if count > 0 => Some(count as u64),
            _ => return Err(invalid!("count must be greater than zero or equal to -1.")),
        };
        let generator = seed_generator(&home, inputs, generator, |_| Ok(SeedGenerator::new(given, reshuffles)))?;
        Ok(Shuffle::new(REPEATING_KIND, input, size, epochs, generator))
    })
}

fn seed_generator(
    home: &Home,
    inputs: &mut Inputs,
    input: Option<usize>,
    make: impl FnOnce(&mut Inputs) -> Result<SeedGenerator>,
) -> Result<Arc<SeedGenerator>> {
    match input {
        Some(index) => SeedGenerator::of_input(home, inputs, index, make),
        None => Ok(Arc::new(make(inputs)?)),
    }
}

/// The size of the buffer; none if it holds the whole input.
fn buffer_size(inputs: &mut Inputs) -> Result<Option<u64>> {
    const UNKNOWN_CARDINALITY: i64 = -2;
    match scalar::<i64>(inputs, 1, "buffer_size")? {
        UNKNOWN_CARDINALITY => Ok(None),
        size if size > 0 => Ok(Some(size as u64)),
        _ => Err(invalid!("buffer_size must be greater than zero or UNKNOWN_CARDINALITY")),
    }
}

#[derive(Clone)]
pub(crate) struct Shuffle {
    kind: &'static str,
    input: DatasetRef,
    size: Option<u64>,
    /// How often the input is read; none if for ever.
    epochs: Option<u64>,
    generator: Arc<SeedGenerator>,
    /// The positions in the input, for random access.
    positions: OnceLock<Vec<u32>>,
}

impl Shuffle {
    /// The same several times, or without end; none if it repeats its input already, or would be empty.
    pub(crate) fn repeated(&self, epochs: Option<u64>) -> Option<DatasetRef> {
        let repeats = self.kind == KIND && epochs != Some(0);
        let (input, generator) = (self.input.clone(), self.generator.clone());
        repeats.then(|| -> DatasetRef { Arc::new(Shuffle::new(REPEATING_KIND, input, self.size, epochs, generator)) })
    }

    fn new(
        kind: &'static str,
        input: DatasetRef,
        size: Option<u64>,
        epochs: Option<u64>,
        generator: Arc<SeedGenerator>,
    ) -> Shuffle {
        Shuffle { kind, input, size, epochs, generator, positions: OnceLock::new() }
    }

    fn positions(&self, count: u32) -> Vec<u32> {
        let mut positions: Vec<u32> = (0..count).collect();
        let count = positions.len();
        let mut numbers = Samples::new(self.generator.first_seeds(), 0);
        for index in 0..count {
            positions.swap(index, index + numbers.next() as usize % (count - index));
        }
        positions
    }
}

impl Dataset for Shuffle {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs)
            .map(|input| -> DatasetRef { Arc::new(Shuffle { input, positions: OnceLock::new(), ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let size = self.size.unwrap_or(u64::MAX);
        check_fits(self.kind, size, LEAST_BYTES, &self.input)?;
        let seeds = self.generator.next();
        Ok(Box::new(ShuffleIterator {
            memory: Held::new(self.kind, size),
            dataset: self,
            place: place.clone(),
            input: Input::ended(),
            epoch: 0,
            seeds,
            numbers: Samples::new(seeds, 0),
            buffer: Vec::new(),
            held: 0,
            slices: VecDeque::new(),
            has_failed: false,
            has_produced: false,
        }))
    }

    fn cardinality(&self) -> Cardinality {
        match (self.epochs, self.input.cardinality()) {
            (None, _) | (_, Cardinality::Infinite) => Cardinality::Infinite,
            (Some(epochs), cardinality) => cardinality.map(|count| count.saturating_mul(epochs)),
        }
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        let count = match self.cardinality() {
            Cardinality::Finite(count) if index as u64 >= count => {
                return Err(out_of_range!("Index out of range [0, {count}):{index}"));
            }
            Cardinality::Finite(count) if count <= u64::from(MOST_POSITIONS) => count as u32,
            _ => return Err(invalid!("Dataset of this cardinality does not support random access.")),
        };
        let positions = self.positions.get_or_init(|| self.positions(count));
        self.input.element_at(pipeline, positions[index] as usize)
    }
}

/// Random access needs the order of the whole dataset in memory: at most 64 MiB.
const MOST_POSITIONS: u32 = 1 << 24;
/// The elements in the buffer are of at most this many epochs, and one more that begins.
const MOST_EPOCHS: usize = 3;

/// The part of the buffer that holds the elements of one epoch. Positions count on without end: the place in the buffer is
/// the remainder by its size.
struct Slice {
    start: u64,
    end: u64,
    /// True if the epoch has ended, so that the slice does not grow any more.
    is_complete: bool,
}

struct ShuffleIterator {
    dataset: Arc<Shuffle>,
    place: Place,
    input: Input,
    /// The number of epochs that have begun.
    epoch: u64,
    /// The seeds of the epoch whose elements are returned.
    seeds: [i64; 2],
    numbers: Samples,
    /// Grows to the size of the buffer as elements arrive; elements that were returned leave an empty place.
    buffer: Vec<Element>,
    /// The number of elements in the buffer.
    held: u64,
    memory: Held,
    slices: VecDeque<Slice>,
    /// True once the memory was used up.
    has_failed: bool,
    has_produced: bool,
}

impl Iterate for ShuffleIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if let Err(error) = ready!(self.poll_fill(ctx)) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok((self.held > 0).then(|| self.draw())))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.place.prefix;
        writer.int(prefix, "epoch_num_random_samples", self.dataset.generator.drawn() as i64);
        writer.int(prefix, "num_random_samples", self.numbers.drawn() as i64);
        writer.int(prefix, "seed", self.seeds[0]);
        writer.int(prefix, "seed2", self.seeds[1]);
        self.input.save(writer, prefix, "end_of_input_sequence")?;
        writer.int(prefix, "epoch", self.epoch as i64);
        writer.int(prefix, "num_elements", self.held as i64);
        self.save_buffer(writer);
        self.save_slices(writer);
        if self.has_produced {
            writer.string(prefix, "data_produced", "");
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.place.prefix.clone();
        self.dataset.generator.set_drawn(reader.int(&prefix, "epoch_num_random_samples")? as u64);
        self.seeds = [reader.int(&prefix, "seed")?, reader.int(&prefix, "seed2")?];
        self.numbers = Samples::new(self.seeds, reader.int(&prefix, "num_random_samples")? as u64);
        if reader.int(&prefix, "end_of_input_sequence")? == 0 {
            self.input = self.place.input(&self.dataset.input)?;
            self.input.restore_present(reader)?;
        }
        self.epoch = reader.int(&prefix, "epoch")? as u64;
        self.restore_buffer(reader)?;
        self.restore_slices(reader)?;
        self.has_produced = reader.contains(&prefix, "data_produced");
        Ok(())
    }
}

impl ShuffleIterator {
    /// Reads until the buffer is full, or the input has ended for the last time.
    fn poll_fill(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        while self.needs_more() {
            if self.input.has_ended() {
                self.begin_epoch()?;
            }
            match ready!(self.input.poll_next(ctx))? {
                Some(element) => self.add(element)?,
                None if self.end_epoch() => break,
                None => {}
            }
        }
        Poll::Ready(Ok(()))
    }

    fn needs_more(&self) -> bool {
        if self.input.has_ended() && self.dataset.epochs.is_some_and(|epochs| self.epoch >= epochs) {
            return false;
        }
        if self.has_failed || self.slices.len() > MOST_EPOCHS && self.held > 0 {
            return false;
        }
        match self.dataset.size {
            Some(size) => self.held < size,
            None => !self.is_serving_complete() || self.held < self.buffer.len() as u64,
        }
    }

    /// True if the epoch that elements are drawn from has been read to its end.
    fn is_serving_complete(&self) -> bool {
        self.slices.iter().find(|slice| slice.start != slice.end).is_some_and(|slice| slice.is_complete)
    }

    fn begin_epoch(&mut self) -> Result<()> {
        self.input = self.place.input(&self.dataset.input)?;
        let start = self.slices.back().map_or(0, |slice| slice.end);
        if self.held == 0 && self.slices.len() > MOST_EPOCHS {
            self.drop_empty_slices(); // an empty input may be repeated without end
        }
        self.slices.push_back(Slice { start, end: start, is_complete: false });
        self.epoch += 1;
        Ok(())
    }

    /// Notes the end of the input; true if it would have no element in any later epoch either.
    fn end_epoch(&mut self) -> bool {
        if let Some(slice) = self.slices.back_mut() {
            slice.is_complete = true;
        }
        let is_endless = self.dataset.epochs.is_none();
        !self.has_produced && (is_endless || self.dataset.input.cardinality() == Cardinality::Finite(0))
    }

    fn add(&mut self, element: Element) -> Result<()> {
        let memory = self.memory.add(cost(&element));
        if memory.is_err() {
            self.fail();
            return memory;
        }
        self.has_produced = true;
        let end = self.slices.back().map_or(0, |slice| slice.end);
        match self.dataset.size {
            None if self.held == self.buffer.len() as u64 => self.buffer.push(element),
            size => {
                let place = (end % size.unwrap_or(self.buffer.len() as u64)) as usize;
                match self.buffer.get_mut(place) {
                    Some(slot) => *slot = element,
                    None => self.buffer.push(element),
                }
            }
        }
        self.held += 1;
        if let Some(slice) = self.slices.back_mut() {
            slice.end += 1;
        }
        Ok(())
    }

    /// Gives the memory back: the sequence ends.
    fn fail(&mut self) {
        self.input.end();
        (self.buffer, self.held) = (Vec::new(), 0);
        self.slices.clear();
        self.has_failed = true;
    }

    /// Takes a random element of the first epoch; the first of its elements moves to the place that becomes free.
    fn draw(&mut self) -> Element {
        self.drop_empty_slices();
        let size = self.dataset.size.unwrap_or(self.buffer.len() as u64);
        let Some(slice) = self.slices.front_mut() else { return Element::new() };
        let offset = u64::from(self.numbers.next()) % (slice.end - slice.start);
        let (first, chosen) = ((slice.start % size) as usize, ((slice.start + offset) % size) as usize);
        slice.start += 1;
        self.held -= 1;
        self.buffer.swap(first, chosen);
        let element = std::mem::take(&mut self.buffer[first]);
        self.memory.remove(cost(&element));
        element
    }

    /// Each epoch has random numbers of its own.
    fn drop_empty_slices(&mut self) {
        while self.slices.front().is_some_and(|slice| slice.start == slice.end) {
            self.slices.pop_front();
            self.seeds = self.dataset.generator.next();
            self.numbers = Samples::new(self.seeds, 0);
        }
    }

    fn save_buffer(&self, writer: &mut StateWriter) {
        let prefix = format!("{}:buffer", self.place.prefix);
        writer.int(&prefix, "num_elements", self.buffer.len() as i64);
        for (index, element) in self.buffer.iter().enumerate() {
            writer.element(&format!("{prefix}::{index}"), element);
        }
    }

    fn save_slices(&self, writer: &mut StateWriter) {
        let prefix = &*self.place.prefix;
        writer.int(prefix, "slices_size", self.slices.len() as i64);
        for (index, slice) in self.slices.iter().enumerate() {
            writer.int(prefix, &format!("slices_start_{index}"), slice.start as i64);
            writer.int(prefix, &format!("slices_end_{index}"), slice.end as i64);
            let is_complete = i64::from(slice.is_complete);
            writer.int(prefix, &format!("slices_reached_end_of_sequence_{index}"), is_complete);
        }
    }

    fn restore_buffer(&mut self, reader: &StateReader) -> Result<()> {
        let prefix = format!("{}:buffer", self.place.prefix);
        for index in 0..reader.count(&prefix, "num_elements")? {
            self.buffer.push(reader.element(&format!("{prefix}::{index}"))?);
        }
        Ok(())
    }

    fn restore_slices(&mut self, reader: &StateReader) -> Result<()> {
        let prefix = &*self.place.prefix;
        for index in 0..reader.count(prefix, "slices_size")? {
            let start = reader.count(prefix, &format!("slices_start_{index}"))? as u64;
            let end = reader.count(prefix, &format!("slices_end_{index}"))? as u64;
            let is_complete = reader.int(prefix, &format!("slices_reached_end_of_sequence_{index}"))? != 0;
            self.slices.push_back(Slice { start, end, is_complete });
        }
        self.held = reader.count(prefix, "num_elements")? as u64;
        self.check_slices()
    }

    /// An error unless the slices follow each other and lie in the buffer.
    fn check_slices(&self) -> Result<()> {
        let len = self.buffer.len() as u64;
        let size = self.dataset.size.unwrap_or(len).max(1);
        let start = self.slices.front().map_or(0, |slice| slice.start);
        let end = self
            .slices
            .iter()
            .try_fold(start, |end, slice| (slice.start == end && slice.end >= slice.start).then_some(slice.end));
        let lies_inside = |end: u64| {
            end - start == self.held
                && self.held <= len
                && (len == size || start % size + self.held <= len && end % size <= len)
        };
        match end {
            Some(end) if lies_inside(end) => Ok(()),
            _ => Err(invalid!("The saved buffer of {} is inconsistent", self.place.prefix)),
        }
    }
}

//! ParallelInterleaveDataset, its experimental alias and LegacyParallelInterleaveDatasetV2: the older parallel interleave,
//! with a fixed number of workers.

use super::background_nested::{BackgroundNested, Reading};
use super::determinism::Determinism;
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar, spec};
use crate::budget::{STAGE_BYTES, Sizing};
use crate::dataset::only;
use crate::function::Function;
use crate::iterate::settle_all;
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Inputs, Kernel, Op, Setup};
use status::{Result, internal, invalid};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ParallelInterleaveDataset(input_dataset: variant, other_arguments: [Targuments], cycle_length: int64, \
              block_length: int64, sloppy: bool, buffer_output_elements: int64, prefetch_input_elements: int64) -> \
              handle: variant; f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, None),
        facts: DATASET,
    },
    Op {
        def: "ExperimentalParallelInterleaveDataset(input_dataset: variant, other_arguments: [Targuments], \
              cycle_length: int64, block_length: int64, sloppy: bool, buffer_output_elements: int64, \
              prefetch_input_elements: int64) -> handle: variant; f: func; Targuments: list(type) >= 0; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, None),
        facts: DATASET,
    },
    Op {
        def: "LegacyParallelInterleaveDatasetV2(input_dataset: variant, other_arguments: [Targuments], \
              cycle_length: int64, block_length: int64, buffer_output_elements: int64, \
              prefetch_input_elements: int64) -> handle: variant; f: func; deterministic: string = \"default\"; \
              Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, Some(Determinism::of(setup)?)),
        facts: DATASET,
    },
];

/// The kernel of an op with an attribute `deterministic`, or with an input `sloppy`.
fn kernel(setup: &Setup<'_>, attr: Option<Determinism>) -> Result<Kernel> {
    let (spec, function) = (spec(setup)?, Function::of(setup, "f")?);
    let numbers = if attr.is_some() { 4 } else { 5 };
    dataset_kernel(setup, move |_, inputs| {
        let (first, last) = (inputs.len() - numbers, inputs.len() - 1);
        let sizes = Sizes {
            cycle: at_least(inputs, first, "cycle_length", 1)?,
            block: at_least(inputs, first + 1, "block_length", 1)?,
            outputs: at_least(inputs, last - 1, "buffer_output_elements", 1)?,
            staged: at_least(inputs, last, "prefetch_input_elements", 0)?,
        };
        let determinism = match attr {
            Some(determinism) => determinism,
            None if scalar(inputs, first + 2, "sloppy")? => Determinism::Free,
            None => Determinism::Kept,
        };
        let kind = if attr.is_some() { "LegacyParallelInterleaveV2" } else { "LegacyParallelInterleave" };
        let input = input_dataset(inputs, 0)?;
        let function = function.capture(inputs.tensors(1, first - 1)?);
        Ok(Legacy { kind, input, function, sizes, determinism, spec: spec.clone() })
    })
}

fn at_least(inputs: &mut Inputs, index: usize, name: &str, least: usize) -> Result<usize> {
    let number = usize::try_from(scalar::<i64>(inputs, index, name)?).ok().filter(|&number| number >= least);
    number.ok_or_else(|| if least == 0 { invalid!("`{name}` must be >= 0") } else { invalid!("`{name}` must be > 0") })
}

/// At most this many datasets are read at once.
const MOST_WORKERS: usize = 1 << 14;

#[derive(Clone)]
struct Sizes {
    cycle: usize,
    block: usize,
    /// How many elements of each dataset are read ahead.
    outputs: usize,
    /// How many datasets are read beside those of the cycle.
    staged: usize,
}

impl Sizes {
    fn workers(&self) -> usize {
        self.cycle.saturating_add(self.staged)
    }
}

#[derive(Clone)]
struct Legacy {
    kind: &'static str,
    input: DatasetRef,
    function: Function,
    sizes: Sizes,
    determinism: Determinism,
    spec: Spec,
}

impl Dataset for Legacy {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(Legacy { input, ..self.clone() }) })
    }

    fn functions(&self) -> Vec<&Function> {
        vec![&self.function]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let reading = Reading {
            function: self.function.in_pipeline(&place.pipeline)?,
            pipeline: place.pipeline.clone(),
            prefix: place.prefix.clone(),
            op: "ParallelInterleaveDataset",
            limit: self.sizes.outputs,
            sizing: Sizing::Given,
            byte_limit: STAGE_BYTES / self.sizes.workers().min(MOST_WORKERS),
        };
        Ok(Box::new(LegacyIterator {
            input: place.input(&self.input)?,
            keeps_order: self.determinism.keeps_order(&place.pipeline),
            dataset: self,
            reading,
            workers: Vec::new(),
            cycle: Vec::new(),
            staged: VecDeque::new(),
            has_started: false,
            next: 0,
            block: 0,
        }))
    }

    fn cardinality(&self) -> Cardinality {
        match self.input.cardinality() {
            Cardinality::Infinite => Cardinality::Infinite,
            _ => Cardinality::Unknown,
        }
    }
}

struct LegacyIterator {
    dataset: Arc<Legacy>,
    input: Input,
    reading: Reading,
    keeps_order: bool,
    /// The datasets that are read.
    workers: Vec<BackgroundNested>,
    /// The workers that elements are taken from, in turns.
    cycle: Vec<Option<usize>>,
    /// The workers that come next, in order.
    staged: VecDeque<usize>,
    has_started: bool,
    /// The place in the cycle, and the number of elements that came from it in this turn.
    next: usize,
    block: usize,
}

/// What a look at one place of the cycle leads to.
enum Look {
    Found(Result<Element>),
    /// Its dataset computes an element.
    Waits,
    /// Its dataset has ended, and another one is in its place.
    Replaced,
    /// There is no dataset any more.
    Empty,
}

impl LegacyIterator {
    fn poll_start(&mut self, ctx: &mut PollContext<'_>) -> Poll<()> {
        while !self.has_started {
            let index = self.workers.len();
            if index >= self.dataset.sizes.workers().min(MOST_WORKERS) {
                self.has_started = true;
                break;
            }
            match ready!(self.poll_open(ctx, index)) {
                None => self.has_started = true,
                Some(worker) => {
                    self.workers.push(worker);
                    match index < self.dataset.sizes.cycle {
                        true => self.cycle.push(Some(index)),
                        false => self.staged.push_back(index),
                    }
                }
            }
        }
        Poll::Ready(())
    }

    fn poll_open(&mut self, ctx: &mut PollContext<'_>, index: usize) -> Poll<Option<BackgroundNested>> {
        Poll::Ready(match ready!(self.input.poll_next(ctx)) {
            Ok(None) => None,
            Ok(Some(element)) => Some(self.reading.begin(index, Ok(element))),
            Err(error) => Some(self.reading.begin(index, Err(error))),
        })
    }

    fn poll_look(&mut self, ctx: &mut PollContext<'_>, place: usize) -> Poll<Look> {
        let Some(worker) = self.cycle[place] else { return Poll::Ready(Look::Empty) };
        Poll::Ready(match self.workers[worker].ahead.poll_next(ctx) {
            Poll::Pending => Look::Waits,
            Poll::Ready(Ok(None)) => ready!(self.poll_replace(ctx, place, worker)),
            Poll::Ready(Ok(Some(element))) => Look::Found(Ok(element)),
            Poll::Ready(Err(error)) => Look::Found(Err(error)),
        })
    }

    /// Gives the worker of a dataset that has ended the next element of the input, and lets the next worker take its place.
    fn poll_replace(&mut self, ctx: &mut PollContext<'_>, place: usize, worker: usize) -> Poll<Look> {
        if let Some(opened) = ready!(self.poll_open(ctx, worker)) {
            self.workers[worker] = opened;
            self.staged.push_back(worker);
        }
        self.cycle[place] = self.staged.pop_front();
        if self.cycle[place].is_none() {
            return Poll::Ready(Look::Empty);
        }
        self.next = (place + 1) % self.cycle.len();
        self.block = 0;
        Poll::Ready(Look::Replaced)
    }

    /// Notes that an element was taken at a place, after this many others were looked at.
    fn advance(&mut self, place: usize, looked: usize) {
        self.next = place;
        if !self.keeps_order && looked > 1 {
            self.block = 0;
            return;
        }
        self.block += 1;
        if self.block >= self.dataset.sizes.block {
            self.next = (place + 1) % self.cycle.len();
            self.block = 0;
        }
    }

    /// Looks at each place once; none if the places have to be looked at again.
    fn poll_round(&mut self, ctx: &mut PollContext<'_>) -> Poll<Option<Result<Option<Element>>>> {
        let (first, len) = (self.next, self.cycle.len());
        let mut waits = false;
        for looked in 0..len {
            let place = (first + looked) % len;
            match ready!(self.poll_look(ctx, place)) {
                Look::Found(found) => {
                    self.advance(place, looked);
                    return Poll::Ready(Some(found.map(Some)));
                }
                Look::Waits if self.keeps_order => {
                    if self.next != place {
                        (self.next, self.block) = (place, 0);
                    }
                    return Poll::Pending;
                }
                Look::Waits => waits = true,
                Look::Replaced => return Poll::Ready(None),
                Look::Empty => {}
            }
        }
        if waits { Poll::Pending } else { Poll::Ready(Some(Ok(None))) }
    }
}

impl Iterate for LegacyIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        ready!(self.poll_start(ctx));
        loop {
            if let Some(next) = ready!(self.poll_round(ctx)) {
                return Poll::Ready(next);
            }
        }
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        let mut is_pending = false;
        for worker in &mut self.workers {
            match worker.ahead.poll_settle(ctx) {
                Poll::Pending => is_pending = true,
                Poll::Ready(settled) => settled?,
            }
        }
        if is_pending { Poll::Pending } else { settle_all(self.input.as_list(), ctx) }
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.reading.prefix;
        match self.input.has_ended() {
            true => writer.string(prefix, "input_exhausted", ""),
            false => self.input.save_present(writer)?,
        }
        writer.int(prefix, "next_index", self.next as i64);
        writer.int(prefix, "block_count", self.block as i64);
        writer.int(prefix, "workers_size", self.dataset.sizes.workers() as i64);
        for index in 0..self.dataset.sizes.workers().min(MOST_WORKERS) {
            save_worker(writer, prefix, index, self.workers.get(index))?;
        }
        let places = self.cycle.iter().map(|place| place.map_or(-1, |worker| worker as i64));
        save_indices(writer, prefix, "interleave", places);
        save_indices(writer, prefix, "staging", self.staged.iter().map(|&worker| worker as i64));
        if self.has_started {
            writer.string(prefix, "worker_threads_running", "");
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.reading.prefix.clone();
        match reader.contains(&prefix, "input_exhausted") {
            true => self.input.end(),
            false => self.input.restore_present(reader)?,
        }
        self.next = reader.count(&prefix, "next_index")?;
        self.block = reader.count(&prefix, "block_count")?;
        let (found, expected) = (reader.count(&prefix, "workers_size")?, self.dataset.sizes.workers());
        if found != expected {
            return Err(internal!("Expected {expected} worker states but found {found}."));
        }
        for index in 0..expected.min(MOST_WORKERS) {
            self.workers.push(restored_worker(&self.reading, reader, &prefix, index)?);
        }
        self.restore_places(reader, &prefix)?;
        self.has_started = reader.contains(&prefix, "worker_threads_running") || self.input.has_ended();
        if !self.has_started {
            self.workers.clear();
        }
        Ok(())
    }
}

impl LegacyIterator {
    /// Reads which worker is where; each may be in one place only.
    fn restore_places(&mut self, reader: &StateReader, prefix: &str) -> Result<()> {
        let mut found = vec![false; self.workers.len()];
        let mut check = |index: i64| match usize::try_from(index) {
            Err(_) => Ok(None),
            Ok(worker) if found.get(worker) == Some(&false) => {
                found[worker] = true;
                Ok(Some(worker))
            }
            Ok(_) => Err(internal!("Duplicate entry for {index} found when reading interleave and staging indices.")),
        };
        for index in 0..reader.count(prefix, "interleave_size")? {
            self.cycle.push(check(reader.int(prefix, &format!("interleave_indices_{index}"))?)?);
        }
        for index in 0..reader.count(prefix, "staging_size")? {
            self.staged.extend(check(reader.int(prefix, &format!("staging_indices_{index}"))?)?);
        }
        self.next %= self.cycle.len().max(1);
        Ok(())
    }
}

fn save_indices(writer: &mut StateWriter, prefix: &str, name: &str, indices: impl ExactSizeIterator<Item = i64>) {
    writer.int(prefix, &format!("{name}_size"), indices.len() as i64);
    for (place, index) in indices.enumerate() {
        writer.int(prefix, &format!("{name}_indices_{place}"), index);
    }
}

fn save_worker(writer: &mut StateWriter, parent: &str, index: usize, worker: Option<&BackgroundNested>) -> Result<()> {
    let (prefix, thread) = (worker_prefix(parent, index), thread_prefix(parent, index));
    writer.int(&prefix, "input_size", 0);
    save_output(writer, &thread, "output", &Ok(Element::new()));
    writer.int(&thread, "iterator_creation_status_code", 0);
    let Some(worker) = worker else {
        writer.int(&prefix, "outputs_size", 0);
        writer.string(&thread, "iterator_exhausted", "");
        writer.int(&thread, "input_size", 0);
        return Ok(());
    };
    worker.ahead.with(|buffer, input| {
        writer.int(&prefix, "outputs_size", buffer.len() as i64);
        for (place, output) in buffer.iter().enumerate() {
            save_output(writer, &prefix, &format!("outputs_{place}"), output);
        }
        if input.has_ended() {
            writer.string(&thread, "iterator_exhausted", "");
            writer.int(&thread, "input_size", 0);
            return Ok(());
        }
        writer.string(&prefix, "is_producing", "");
        input.save_present(writer)?;
        writer.int(&thread, "input_size", worker.element.len() as i64);
        for (place, component) in worker.element.iter().enumerate() {
            writer.tensor(&thread, &format!("input_{place}"), component.clone());
        }
        Ok(())
    })
}

fn save_output(writer: &mut StateWriter, prefix: &str, key: &str, output: &Result<Element>) {
    writer.status(prefix, &format!("{key}_status_code"), &format!("{key}_status_msg"), output);
    let element = output.as_deref().unwrap_or_default();
    writer.int(prefix, &format!("{key}_output_size"), element.len() as i64);
    for (place, component) in element.iter().enumerate() {
        writer.tensor(prefix, &format!("{key}_output_{place}"), component.clone());
    }
}

fn restored_worker(
    reading: &Reading,
    reader: &Arc<StateReader>,
    parent: &str,
    index: usize,
) -> Result<BackgroundNested> {
    let (prefix, thread) = (worker_prefix(parent, index), thread_prefix(parent, index));
    let mut outputs = Vec::new();
    for place in 0..reader.count(&prefix, "outputs_size")? {
        outputs.push(restored_output(reader, &prefix, &format!("outputs_{place}"))?);
    }
    // TensorFlow's thread may hold one element that has no room in the buffer.
    match restored_output(reader, &thread, "output")? {
        Ok(element) if element.is_empty() => {}
        held => outputs.push(held),
    }
    if !reader.contains(&thread, "iterator_exhausted") {
        let element = restored_input(reader, &thread)?;
        return Ok(reading.restored(index, Some(element), outputs, reader));
    }
    for place in [&thread, &prefix] {
        let element = restored_input(reader, place)?;
        if !element.is_empty() {
            return Ok(reading.begin(index, Ok(element))); // its dataset was not there yet
        }
    }
    Ok(reading.ended(outputs))
}

fn restored_input(reader: &StateReader, prefix: &str) -> Result<Element> {
    reader.tensors(prefix, reader.count(prefix, "input_size")?, |place| format!("input_{place}"))
}

fn restored_output(reader: &StateReader, prefix: &str, key: &str) -> Result<Result<Element>> {
    let status = reader.status(prefix, &format!("{key}_status_code"), &format!("{key}_status_msg"))?;
    let count = reader.count(prefix, &format!("{key}_output_size"))?;
    let element = reader.tensors(prefix, count, |place| format!("{key}_output_{place}"))?;
    Ok(status.map(|()| element))
}

fn worker_prefix(prefix: &str, index: usize) -> String {
    format!("{prefix}::worker_{index}")
}

fn thread_prefix(prefix: &str, index: usize) -> String {
    format!("{prefix}::worker_thread_{index}")
}

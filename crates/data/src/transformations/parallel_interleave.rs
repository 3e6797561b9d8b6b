//! ParallelInterleaveDatasetV2 to V4: blocks of elements of the datasets that a function returns, in turns. The datasets
//! are read in the background.

use super::background_nested::{BackgroundNested, Reading, read_counted, write_counted};
use super::determinism::Determinism;
use super::parallel_calls::parallel_calls;
use super::saved::{read_list, write_list};
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
use status::{Result, failed_precondition, invalid};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ParallelInterleaveDatasetV2(input_dataset: variant, other_arguments: [Targuments], cycle_length: int64, \
              block_length: int64, num_parallel_calls: int64) -> handle: variant; f: func; \
              Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              sloppy: bool = false; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, "ParallelInterleaveV2", Determinism::of_sloppy(setup)?),
        facts: DATASET,
    },
    Op {
        def: "ParallelInterleaveDatasetV3(input_dataset: variant, other_arguments: [Targuments], cycle_length: int64, \
              block_length: int64, num_parallel_calls: int64) -> handle: variant; f: func; \
              deterministic: string = \"default\"; Targuments: list(type) >= 0; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, "ParallelInterleaveV3", Determinism::of(setup)?),
        facts: DATASET,
    },
    Op {
        def: "ParallelInterleaveDatasetV4(input_dataset: variant, other_arguments: [Targuments], cycle_length: int64, \
              block_length: int64, buffer_output_elements: int64, prefetch_input_elements: int64, \
              num_parallel_calls: int64) -> handle: variant; f: func; deterministic: string = \"default\"; \
              Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, "ParallelInterleaveV4", Determinism::of(setup)?),
        facts: DATASET,
    },
];

const AUTOTUNE: i64 = -1;
/// At most this many datasets are open in a cycle, and as many are opened ahead.
const MOST_OPEN: usize = 1 << 14;

fn kernel(setup: &Setup<'_>, kind: &'static str, determinism: Determinism) -> Result<Kernel> {
    let (spec, function) = (spec(setup)?, Function::of(setup, "f")?);
    let numbers = if kind.ends_with("V4") { 5 } else { 3 };
    dataset_kernel(setup, move |ctx, inputs| {
        let first = inputs.len() - numbers;
        let sizes = Sizes::of(inputs, first, ctx.pool().threads())?;
        let input = input_dataset(inputs, 0)?;
        let function = function.capture(inputs.tensors(1, first - 1)?);
        Ok(ParallelInterleave { kind, input, function, sizes, determinism, spec: spec.clone() })
    })
}

/// The numbers among the inputs.
#[derive(Clone)]
struct Sizes {
    cycle: usize,
    block: usize,
    /// How many elements of each dataset are read ahead.
    outputs: usize,
    /// Who decides on it.
    sizing: Sizing,
    /// How many datasets are opened ahead.
    inputs: usize,
}

impl Sizes {
    fn of(inputs: &mut Inputs, first: usize, threads: usize) -> Result<Sizes> {
        let last = inputs.len() - 1;
        let block = positive(scalar(inputs, first + 1, "block_length")?);
        let block = block.ok_or_else(|| invalid!("`block_length` must be > 0"))?;
        let (outputs, ahead) = match last - first {
            4 => buffer_sizes(inputs, first + 2)?,
            _ => (None, None),
        };
        let number: i64 = scalar(inputs, last, "num_parallel_calls")?;
        let calls = parallel_calls(number)?;
        let cycle: i64 = scalar(inputs, first, "cycle_length")?;
        let cycle = match cycle {
            AUTOTUNE => calls.map_or(threads.div_ceil(3), |calls| calls.min(threads)).max(1),
            cycle => given_cycle(cycle, number)?,
        };
        Ok(Sizes {
            cycle,
            block,
            sizing: if outputs.is_some() { Sizing::Given } else { Sizing::Chosen },
            outputs: outputs.unwrap_or(block.saturating_mul(2).saturating_add(1)),
            inputs: ahead.unwrap_or(cycle.saturating_mul(2)).min(MOST_OPEN),
        })
    }
}

fn positive(number: i64) -> Option<usize> {
    usize::try_from(number).ok().filter(|&number| number > 0)
}

fn buffer_sizes(inputs: &mut Inputs, first: usize) -> Result<(Option<usize>, Option<usize>)> {
    let outputs: i64 = scalar(inputs, first, "buffer_output_elements")?;
    if outputs != AUTOTUNE && outputs <= 0 {
        return Err(invalid!("`buffer_output_elements` must be `tf.data.AUTOTUNE` or > 0 but is {outputs}"));
    }
    let ahead: i64 = scalar(inputs, first + 1, "prefetch_input_elements")?;
    if ahead != AUTOTUNE && ahead < 0 {
        return Err(invalid!("`prefetch_input_elements` must be `tf.data.AUTOTUNE` or >= 0 but is {ahead}"));
    }
    Ok((usize::try_from(outputs).ok(), usize::try_from(ahead).ok()))
}

fn given_cycle(cycle: i64, calls: i64) -> Result<usize> {
    let length = positive(cycle)
        .ok_or_else(|| invalid!("`cycle_length` must be `tf.data.AUTOTUNE` or greater than 0 but is {cycle}"))?;
    if calls > cycle {
        return Err(invalid!(
            "If `cycle_length` is set to a fixed value, `num_parallel_calls` must be either `tf.data.AUTOTUNE` or a \
             value less than or equal to `cycle_length`. However, `num_parallel_calls` is {calls} and `cycle_length` is \
             {cycle}"
        ));
    }
    Ok(length)
}

#[derive(Clone)]
struct ParallelInterleave {
    kind: &'static str,
    input: DatasetRef,
    function: Function,
    sizes: Sizes,
    determinism: Determinism,
    spec: Spec,
}

impl Dataset for ParallelInterleave {
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
        only(inputs).map(|input| -> DatasetRef { Arc::new(ParallelInterleave { input, ..self.clone() }) })
    }

    fn functions(&self) -> Vec<&Function> {
        vec![&self.function]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let open = self.sizes.cycle.min(MOST_OPEN) + self.sizes.inputs;
        let reading = Reading {
            function: self.function.in_pipeline(&place.pipeline)?,
            pipeline: place.pipeline.clone(),
            prefix: place.prefix.clone(),
            op: "ParallelInterleaveDataset",
            limit: self.sizes.outputs,
            byte_limit: STAGE_BYTES / open,
            sizing: self.sizes.sizing,
        };
        Ok(Box::new(ParallelInterleaveIterator {
            input: place.input(&self.input)?.kept(),
            keeps_order: self.determinism.keeps_order(&place.pipeline),
            dataset: self,
            reading,
            current: Vec::new(),
            future: VecDeque::new(),
            is_filled: false,
            cycle: 0,
            block: 0,
            opened: 0,
        }))
    }

    fn cardinality(&self) -> Cardinality {
        match self.input.cardinality() {
            Cardinality::Infinite => Cardinality::Infinite,
            _ => Cardinality::Unknown,
        }
    }
}

struct ParallelInterleaveIterator {
    dataset: Arc<ParallelInterleave>,
    input: Input,
    reading: Reading,
    keeps_order: bool,
    /// The datasets of the cycle; the last one is present.
    current: Vec<Option<BackgroundNested>>,
    /// The datasets that follow, in order.
    future: VecDeque<BackgroundNested>,
    /// True once the first datasets are in the cycle.
    is_filled: bool,
    /// The place in the cycle, and the number of elements that came from it in this turn.
    cycle: usize,
    block: usize,
    opened: usize,
}

impl ParallelInterleaveIterator {
    /// The dataset of the next element of the input, or none at its end.
    fn poll_open(&mut self, ctx: &mut PollContext<'_>) -> Poll<Option<BackgroundNested>> {
        let element = match ready!(self.input.poll_next(ctx)) {
            Ok(None) => return Poll::Ready(None),
            Ok(Some(element)) => Ok(element),
            Err(error) => Err(error),
        };
        let id = self.opened;
        self.opened += 1;
        Poll::Ready(Some(self.reading.begin(id, element)))
    }

    fn poll_fill_cycle(&mut self, ctx: &mut PollContext<'_>) -> Poll<()> {
        while !self.is_filled {
            match self.current.len() < self.dataset.sizes.cycle.min(MOST_OPEN) {
                true => match ready!(self.poll_open(ctx)) {
                    Some(nested) => self.current.push(Some(nested)),
                    None => self.is_filled = true,
                },
                false => self.is_filled = true,
            }
        }
        Poll::Ready(())
    }

    /// Opens datasets ahead, as far as the input has elements now.
    fn open_ahead(&mut self, ctx: &mut PollContext<'_>) {
        while self.future.len() < self.dataset.sizes.inputs && !self.input.has_ended() {
            match self.poll_open(ctx) {
                Poll::Ready(Some(nested)) => self.future.push_back(nested),
                _ => return,
            }
        }
    }

    fn next_place(&mut self) {
        self.block = 0;
        self.cycle = (self.cycle + 1) % self.current.len().max(1);
    }

    /// The next element of the place that has the turn.
    fn poll_turn(&mut self, ctx: &mut PollContext<'_>) -> Next {
        while !self.current.is_empty() {
            self.skip_closed();
            let Some(Some(nested)) = self.current.get_mut(self.cycle) else { return Poll::Ready(Ok(None)) };
            match ready!(nested.ahead.poll_next(ctx)) {
                Ok(None) => ready!(self.poll_replace(ctx)),
                next => {
                    self.block += 1;
                    if self.block >= self.dataset.sizes.block {
                        self.next_place();
                    }
                    return Poll::Ready(next);
                }
            }
        }
        Poll::Ready(Ok(None))
    }

    fn skip_closed(&mut self) {
        let len = self.current.len();
        let open = (0..len).find(|offset| self.current[(self.cycle + offset) % len].is_some());
        if let Some(offset) = open.filter(|&offset| offset > 0) {
            self.cycle = (self.cycle + offset) % len;
            self.block = 0;
        }
    }

    /// Puts the next dataset in the place of the one that has ended. Its turn comes in the next cycle.
    fn poll_replace(&mut self, ctx: &mut PollContext<'_>) -> Poll<()> {
        let next = match self.future.pop_front() {
            Some(next) => Some(next),
            None => ready!(self.poll_open(ctx)),
        };
        self.current[self.cycle] = next;
        while matches!(self.current.last(), Some(None)) {
            self.current.pop();
        }
        self.cycle = self.cycle.min(self.current.len().saturating_sub(1));
        self.next_place();
        Poll::Ready(())
    }

    /// The next element of any place that has one.
    fn poll_any(&mut self, ctx: &mut PollContext<'_>) -> Next {
        for _ in 0..self.current.len().max(1) {
            if let Poll::Ready(next) = self.poll_turn(ctx) {
                return Poll::Ready(next);
            }
            self.next_place();
        }
        Poll::Pending
    }

    fn all(&mut self) -> impl Iterator<Item = &mut BackgroundNested> {
        self.current.iter_mut().flatten().chain(&mut self.future)
    }
}

impl Iterate for ParallelInterleaveIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        ready!(self.poll_fill_cycle(ctx));
        let next = if self.keeps_order { self.poll_turn(ctx) } else { self.poll_any(ctx) };
        self.open_ahead(ctx);
        next
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        if self.input.is_reading() {
            let opened = ready!(self.poll_open(ctx));
            self.future.extend(opened);
        }
        let mut is_pending = false;
        for nested in self.all() {
            match nested.ahead.poll_settle(ctx) {
                Poll::Pending => is_pending = true,
                Poll::Ready(settled) => settled?,
            }
        }
        if is_pending { Poll::Pending } else { settle_all(self.input.as_list(), ctx) }
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.reading.prefix;
        self.input.save(writer, prefix, "end_of_input")?;
        writer.int(prefix, "block_index", self.block as i64);
        writer.int(prefix, "cycle_index", self.cycle as i64);
        writer.int(prefix, "element_id_counter", self.opened as i64);
        writer.int(prefix, "current_elements.size", self.dataset.sizes.cycle as i64);
        for place in 0..self.dataset.sizes.cycle.min(MOST_OPEN) {
            let nested = self.current.get(place).and_then(Option::as_ref);
            save_nested(writer, &current_prefix(prefix, place), nested)?;
        }
        writer.int(prefix, "future_elements.size", self.future.len() as i64);
        for (place, nested) in self.future.iter().enumerate() {
            save_nested(writer, &future_prefix(prefix, place), Some(nested))?;
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.reading.prefix.clone();
        self.input.restore(reader, &prefix, "end_of_input")?;
        self.block = reader.count(&prefix, "block_index")?;
        self.cycle = reader.count(&prefix, "cycle_index")?;
        self.opened = reader.count(&prefix, "element_id_counter")?;
        let (found, length) = (reader.count(&prefix, "current_elements.size")?, self.dataset.sizes.cycle);
        if found != length {
            return Err(failed_precondition!(
                "The iterator cycle length {length} is different from the cycle length to restore from the checkpoint: \
                 {found}"
            ));
        }
        for place in 0..length.min(MOST_OPEN) {
            let nested = restored_nested(&self.reading, reader, &current_prefix(&prefix, place))?;
            self.current.push(nested);
        }
        while matches!(self.current.last(), Some(None)) {
            self.current.pop();
        }
        self.cycle %= self.current.len().max(1);
        self.is_filled = !self.current.is_empty();
        for place in 0..reader.count(&prefix, "future_elements.size")? {
            let nested = restored_nested(&self.reading, reader, &future_prefix(&prefix, place))?;
            self.future.extend(nested);
        }
        Ok(())
    }
}

fn current_prefix(prefix: &str, place: usize) -> String {
    format!("{prefix}::current_elements::{place}")
}

fn future_prefix(prefix: &str, place: usize) -> String {
    format!("{prefix}::future_elements::{place}")
}

fn save_nested(writer: &mut StateWriter, prefix: &str, nested: Option<&BackgroundNested>) -> Result<()> {
    writer.int(prefix, "element_uninitialized", i64::from(nested.is_none()));
    let Some(nested) = nested else { return Ok(()) };
    nested.ahead.with(|buffer, input| {
        writer.int(prefix, "restore_iterator", i64::from(!input.has_ended()));
        if !input.has_ended() {
            input.save_present(writer)?;
            writer.int(prefix, ".id", nested.id as i64);
            write_counted(writer, prefix, ".inputs", &nested.element);
        }
        writer.int(prefix, ".results.size", buffer.len() as i64);
        for (index, result) in buffer.iter().enumerate() {
            save_result(writer, prefix, &format!(".results[{index}]"), result);
        }
        Ok(())
    })
}

fn save_result(writer: &mut StateWriter, prefix: &str, key: &str, result: &Result<Element>) {
    writer.status(prefix, &format!("{key}.code"), &format!("{key}.error_message"), result);
    let element = result.as_deref().unwrap_or_default();
    writer.int(prefix, &format!("{key}.size"), element.len() as i64);
    write_list(writer, prefix, key, element);
    writer.string(prefix, &format!("{key}.is_ready"), "");
}

fn restored_nested(reading: &Reading, reader: &Arc<StateReader>, prefix: &str) -> Result<Option<BackgroundNested>> {
    if reader.int(prefix, "element_uninitialized")? != 0 {
        return Ok(None);
    }
    let mut results = Vec::new();
    for index in 0..reader.count(prefix, ".results.size")? {
        results.push(restored_result(reader, prefix, &format!(".results[{index}]"))?);
    }
    if reader.int(prefix, "restore_iterator")? == 0 {
        return Ok(Some(reading.ended(results)));
    }
    let element = read_counted(reader, prefix, ".inputs")?;
    Ok(Some(reading.restored(reader.count(prefix, ".id")?, Some(element), results, reader)))
}

fn restored_result(reader: &StateReader, prefix: &str, key: &str) -> Result<Result<Element>> {
    let status = reader.status(prefix, &format!("{key}.code"), &format!("{key}.error_message"))?;
    let count = reader.count(prefix, &format!("{key}.size"))?;
    let element = read_list(reader, prefix, key, count)?;
    Ok(status.map(|()| element))
}

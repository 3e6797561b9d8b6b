//! InterleaveDataset: blocks of elements of the datasets that a function returns, in turns.

use super::map::in_function;
use super::nested::Nested;
use super::saved::{read_list, write_list};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar, spec};
use crate::dataset::only;
use crate::function::{Function, FunctionRun};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, invalid};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "InterleaveDataset(input_dataset: variant, other_arguments: [Targuments], cycle_length: int64, \
          block_length: int64) -> handle: variant; f: func; Targuments: list(type) >= 0; \
          output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = \"\"",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

const AUTOTUNE: i64 = -1;

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (spec, function) = (spec(setup)?, Function::of(setup, "f")?);
    dataset_kernel(setup, move |ctx, inputs| {
        let last = inputs.len() - 1;
        let cycle_length: i64 = scalar(inputs, last - 1, "cycle_length")?;
        let cycle_length = if cycle_length == AUTOTUNE { ctx.pool().threads() as i64 } else { cycle_length };
        let block_length: i64 = scalar(inputs, last, "block_length")?;
        let input = input_dataset(inputs, 0)?;
        let function = function.capture(inputs.tensors(1, last - 2)?);
        Ok(Interleave {
            input,
            function,
            cycle_length: positive(cycle_length, "cycle_length")?,
            block_length: positive(block_length, "block_length")?,
            spec: spec.clone(),
        })
    })
}

fn positive(value: i64, name: &str) -> Result<usize> {
    let found = usize::try_from(value).ok().filter(|&value| value > 0);
    found.ok_or_else(|| invalid!("{name} must be greater than zero."))
}

#[derive(Clone)]
struct Interleave {
    input: DatasetRef,
    function: Function,
    cycle_length: usize,
    block_length: usize,
    spec: Spec,
}

impl Dataset for Interleave {
    fn kind(&self) -> &'static str {
        "Interleave"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(Interleave { input, ..self.clone() }) })
    }

    fn functions(&self) -> Vec<&Function> {
        vec![&self.function]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(InterleaveIterator {
            input: place.input(&self.input)?.kept(),
            function: self.function.in_pipeline(&place.pipeline)?,
            open: BTreeMap::new(),
            cycle: 0,
            block: 0,
            opened: 0,
            dataset: self,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

struct InterleaveIterator {
    input: Input,
    function: FunctionRun,
    /// The elements whose datasets are read, by their place in the cycle. The cycle may be much longer than the input.
    open: BTreeMap<usize, (Element, Nested)>,
    /// The place in the cycle, and the number of elements that came from it in this turn.
    cycle: usize,
    block: usize,
    opened: usize,
    dataset: Arc<Interleave>,
    prefix: Arc<str>,
}

/// States name at most this many places without a dataset.
const SAVED_PLACES: usize = 1 << 12;

impl InterleaveIterator {
    fn advance(&mut self) {
        self.block = 0;
        self.cycle = (self.cycle + 1) % self.dataset.cycle_length;
    }

    /// Waits for the dataset at a place; an error drops it.
    fn poll_open(&mut self, ctx: &mut PollContext<'_>, place: usize) -> Poll<Result<()>> {
        let Some((_, nested)) = self.open.get_mut(&place) else { return Poll::Ready(Ok(())) };
        let failed = |error| in_function(error, "InterleaveDataset", &self.prefix);
        let opened = ready!(nested.poll_open(ctx, "Function", failed));
        if opened.is_err() {
            self.open.remove(&place);
        }
        Poll::Ready(opened)
    }

    /// The next element of the dataset at this place, or none if another place has the turn.
    fn poll_current(&mut self, ctx: &mut PollContext<'_>) -> Next {
        ready!(self.poll_open(ctx, self.cycle))?;
        let Some((_, nested)) = self.open.get_mut(&self.cycle) else { return Poll::Ready(Ok(None)) };
        let next = ready!(nested.poll_next(ctx))?;
        self.block += 1;
        if next.is_none() {
            self.open.remove(&self.cycle);
        }
        if next.is_none() || self.block >= self.dataset.block_length {
            self.advance();
        }
        Poll::Ready(Ok(next))
    }

    /// Fills this place with the next element of the input, or moves on to the next place that is filled.
    fn poll_fill(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        match ready!(self.input.poll_next(ctx))? {
            Some(element) => {
                let call = self.function.call(element.clone());
                self.open.insert(self.cycle, (element, Nested::new(call, self.nested_prefix(self.cycle))));
                self.opened += 1;
            }
            None => self.move_on(),
        }
        Poll::Ready(Ok(()))
    }

    fn move_on(&mut self) {
        let next = self.open.range(self.cycle..).next().or_else(|| self.open.iter().next());
        if let Some((&place, _)) = next {
            (self.cycle, self.block) = (place, 0);
        }
    }

    fn nested_prefix(&self, place: usize) -> String {
        format!("{}[{place}]", self.prefix)
    }

    fn save_places(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        let last_open = self.open.keys().next_back().map_or(0, |last| last + 1);
        for place in 0..self.dataset.cycle_length.min(SAVED_PLACES.max(last_open)) {
            let open = self.open.get(&place);
            writer.int(prefix, &format!("{UNINITIALIZED}[{place}]"), i64::from(open.is_none()));
            let Some((element, nested)) = open else { continue };
            writer.int(prefix, &format!("args_size[{place}]"), element.len() as i64);
            write_list(writer, prefix, &format!("args_list_[{place}]"), element);
            nested.save(writer)?;
        }
        Ok(())
    }

    fn restore_place(&mut self, reader: &Arc<StateReader>, place: usize) -> Result<()> {
        let prefix = self.prefix.clone();
        let count = reader.count(&prefix, &format!("args_size[{place}]"))?;
        let element = read_list(reader, &prefix, &format!("args_list_[{place}]"), count)?;
        let call = self.function.call(element.clone());
        self.open.insert(place, (element, Nested::restored(call, self.nested_prefix(place), reader)));
        Ok(())
    }
}

const UNINITIALIZED: &str = "current_elements_uninitialized";

impl Iterate for InterleaveIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        while !self.input.has_ended() || !self.open.is_empty() {
            if !self.open.contains_key(&self.cycle) {
                ready!(self.poll_fill(ctx))?;
            } else if let Some(element) = ready!(self.poll_current(ctx))? {
                return Poll::Ready(Ok(Some(element)));
            }
        }
        Poll::Ready(Ok(None))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        let places: Vec<usize> = self.open.keys().copied().collect();
        for place in places {
            ready!(self.poll_open(ctx, place))?;
            if let Some((_, nested)) = self.open.get_mut(&place) {
                ready!(nested.poll_settle(ctx))?;
            }
        }
        crate::iterate::settle_all(self.input.as_list(), ctx)
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        self.input.save(writer, prefix, "end_of_input")?;
        writer.int(prefix, "cycle_index", self.cycle as i64);
        writer.int(prefix, "block_index", self.block as i64);
        writer.int(prefix, "num_open", self.open.len() as i64);
        writer.int(prefix, "next_input_element_index", self.opened as i64);
        writer.int(prefix, "last_checkpointed_input_element_index", -1);
        self.save_places(writer)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.prefix.clone();
        self.input.restore(reader, &prefix, "end_of_input")?;
        self.cycle = reader.count(&prefix, "cycle_index")? % self.dataset.cycle_length;
        self.block = reader.count(&prefix, "block_index")?;
        self.opened = reader.count(&prefix, "next_input_element_index")?;
        for place in 0..self.dataset.cycle_length {
            match reader.int(&prefix, &format!("{UNINITIALIZED}[{place}]")) {
                Ok(0) => self.restore_place(reader, place)?,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        Ok(())
    }
}

//! ChooseFastestBranchDataset: one of several equal transformations of a dataset, the fastest in experiments.

use super::map::in_function;
use super::nested::Nested;
use super::take::take;
use super::timings::Timings;
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar, spec};
use crate::function::{Function, FunctionRun};
use crate::{
    Cardinality, Dataset, DatasetRef, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
    dataset_tensor, full_name,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use parking_lot::Mutex;
use smallvec::smallvec;
use status::{Result, invalid};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, ready};
use std::time::Instant;

pub(crate) const OPS: &[Op] = &[Op {
    def: "ChooseFastestBranchDataset(input_dataset: variant, ratio_numerator: int64, ratio_denominator: int64, \
          other_arguments: [Targuments]) -> handle: variant; Targuments: list(type) >= 0; \
          num_elements_per_branch: int >= 1; branches: list(func) >= 1; other_arguments_lengths: list(int) >= 1; \
          output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (spec, branches) = (spec(setup)?, Function::list_of(setup, "branches")?);
    let (experiments, lengths) = (setup.int("num_elements_per_branch")?, setup.ints("other_arguments_lengths")?);
    if branches.len() != lengths.len() {
        return Err(invalid!("branches and other_arguments_lengths must have the same length."));
    }
    dataset_kernel(setup, move |_, inputs| {
        let ratio = Ratio { numerator: ratio(inputs, 1, "numerator")?, denominator: ratio(inputs, 2, "denominator")? };
        if experiments % ratio.denominator != 0 {
            return Err(invalid!("`num_elements_per_branch` must be divisible by `ratio_denominator`."));
        }
        let input = input_dataset(inputs, 0)?;
        let mut arguments = inputs.tensors_from(3)?.into_iter();
        let branches = branches.iter().zip(&lengths).map(|(branch, &length)| {
            let length = usize::try_from(length).unwrap_or(0);
            branch.capture(arguments.by_ref().take(length).collect())
        });
        Ok(ChooseFastestBranch { branches: branches.collect(), input, experiments, ratio, spec: spec.clone() })
    })
}

fn ratio(inputs: &mut op::Inputs, index: usize, name: &str) -> Result<i64> {
    let value: i64 = scalar(inputs, index, &format!("ratio_{name}"))?;
    if value <= 0 {
        return Err(invalid!("`ratio_{name}` must be greater than zero."));
    }
    Ok(value)
}

/// How many elements of the input give how many elements.
#[derive(Clone, Copy)]
struct Ratio {
    numerator: i64,
    denominator: i64,
}

struct ChooseFastestBranch {
    input: DatasetRef,
    branches: Vec<Function>,
    /// The number of elements that each branch returns while it is measured.
    experiments: i64,
    ratio: Ratio,
    spec: Spec,
}

impl Dataset for ChooseFastestBranch {
    fn kind(&self) -> &'static str {
        "ChooseFastestBranch"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let branches = self.branches.iter().map(|branch| branch.in_pipeline(&place.pipeline));
        Ok(Box::new(ChooseFastestBranchIterator {
            input: Arc::new(Mutex::new(place.input(&self.input)?)),
            branches: branches.collect::<Result<Vec<_>>>()?,
            branch: 0,
            done: 0,
            fastest: None,
            current: None,
            started: None,
            timings: Timings::new(self.branches.len()),
            dataset: self,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        let Ratio { numerator, denominator } = self.ratio;
        self.input.cardinality().map(|count| (count as f64 * numerator as f64 / denominator as f64) as u64)
    }
}

struct ChooseFastestBranchIterator {
    /// The input, which all branches read, one after the other.
    input: Arc<Mutex<Input>>,
    branches: Vec<FunctionRun>,
    /// The branch that is measured; after the last one the fastest is used.
    branch: usize,
    done: i64,
    fastest: Option<usize>,
    current: Option<Nested>,
    /// When the current element was requested.
    started: Option<Instant>,
    timings: Timings,
    dataset: Arc<ChooseFastestBranch>,
    prefix: Arc<str>,
}

impl ChooseFastestBranchIterator {
    fn is_measured(&self) -> bool {
        self.branch < self.branches.len()
    }

    /// Begins the branch that is measured, or the fastest one.
    fn open(&mut self, saved: Option<&Arc<StateReader>>) -> Result<()> {
        let mut input = wrapper(self.input.clone(), self.dataset.input.spec().clone());
        let mut index = self.branch;
        if self.is_measured() {
            // a branch that reads ahead must not take elements of the next one
            let Ratio { numerator, denominator } = self.dataset.ratio;
            input = take(input, self.dataset.experiments.saturating_mul(numerator) / denominator);
        } else {
            index = self.fastest.unwrap_or_else(|| self.timings.fastest());
            self.fastest = Some(index);
        }
        let Some(branch) = self.branches.get(index) else { return Err(invalid!("There is no branch {index}")) };
        let call = branch.call(smallvec![dataset_tensor(input)?]);
        let name = format!("{}[{index}]", self.prefix);
        self.current = Some(match saved {
            Some(saved) => Nested::restored(call, name, saved),
            None => Nested::new(call, name),
        });
        Ok(())
    }

    fn poll_open(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        let Some(nested) = &mut self.current else { return Poll::Ready(Ok(())) };
        let failed = |error| in_function(error, "ChooseFastestBranchDataset", &self.prefix);
        let opened = ready!(nested.poll_open(ctx, "Function", failed));
        if opened.is_err() {
            self.current = None;
        }
        Poll::Ready(opened)
    }

    /// The first experiment with a branch includes its preparation, and does not count.
    fn end_experiment(&mut self) {
        let time = self.started.take().map(|started| started.elapsed());
        if let Some(time) = time.filter(|_| self.done > 0) {
            self.timings.add(self.branch, time);
        }
        self.done += 1;
        if self.done >= self.dataset.experiments {
            (self.branch, self.done, self.current) = (self.branch + 1, 0, None);
        }
    }
}

impl Iterate for ChooseFastestBranchIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.current.is_none() {
            self.open(None)?;
        }
        ready!(self.poll_open(ctx))?;
        self.started.get_or_insert_with(Instant::now);
        let Some(nested) = &mut self.current else { return Poll::Ready(Ok(None)) };
        let next = ready!(nested.poll_next(ctx));
        if self.is_measured() {
            self.end_experiment();
        }
        Poll::Ready(next)
    }

    fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        ready!(self.poll_open(ctx))?;
        if let Some(nested) = &mut self.current {
            ready!(nested.poll_settle(ctx))?;
        }
        crate::iterate::settle_all(self.input.lock().as_list(), ctx)
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        self.input.lock().save(writer, prefix, "end_of_input")?;
        writer.int(prefix, &full_name(prefix, "experiment_counter"), self.done);
        writer.int(prefix, &full_name(prefix, "branch_index"), self.branch as i64);
        writer.int(prefix, &full_name(prefix, "fastest_index"), self.fastest.map_or(-1, |fastest| fastest as i64));
        match &self.current {
            Some(nested) => nested.save(writer)?,
            None => writer.string(prefix, &full_name(prefix, "input_impl_empty"), ""),
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.prefix.clone();
        self.input.lock().restore(reader, &prefix, "end_of_input")?;
        self.done = reader.count(&prefix, "experiment_counter")? as i64;
        self.branch = reader.count(&prefix, "branch_index")?;
        self.fastest = usize::try_from(reader.int(&prefix, "fastest_index")?).ok();
        if !reader.contains(&prefix, "input_impl_empty") {
            self.open(Some(reader))?;
        }
        Ok(())
    }
}

/// A dataset of the rest of an iterator, for one iteration.
fn wrapper(input: Arc<Mutex<Input>>, spec: Spec) -> DatasetRef {
    Arc::new(Wrapper { input, spec, is_used: AtomicBool::new(false) })
}

struct Wrapper {
    input: Arc<Mutex<Input>>,
    spec: Spec,
    is_used: AtomicBool,
}

impl Dataset for Wrapper {
    fn kind(&self) -> &'static str {
        "Wrapper"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn iterate(self: Arc<Self>, _: &Place) -> Result<Box<dyn Iterate>> {
        if self.is_used.swap(true, Ordering::Relaxed) {
            return Err(invalid!(
                "Cannot create more than one WrapperIterator per WrapperDataset. Make sure the branches to \
                 ChooseFastestDataset do not expect the input to repeat."
            ));
        }
        Ok(Box::new(WrapperIterator(self.input.clone())))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

/// Its state is that of the input, which is saved where it belongs.
struct WrapperIterator(Arc<Mutex<Input>>);

impl Iterate for WrapperIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        self.0.lock().poll_next(ctx)
    }

    fn save(&self, _: &mut StateWriter) -> Result<()> {
        Ok(())
    }

    fn restore(&mut self, _: &Arc<StateReader>) -> Result<()> {
        Ok(())
    }
}

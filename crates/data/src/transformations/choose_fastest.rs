//! ChooseFastestDataset: one of several datasets with the same elements, the fastest in experiments.

use super::directed_interleave::type_names;
use super::timings::Timings;
use crate::attrs::{DATASET, dataset_kernel, input_dataset, spec};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader,
    StateWriter, full_name,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Instant;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ChooseFastestDataset(input_datasets: N * variant) -> handle: variant; N: int >= 2; \
              num_experiments: int; output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalChooseFastestDataset(input_datasets: N * variant) -> handle: variant; N: int >= 2; \
              num_experiments: int; output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (spec, experiments) = (spec(setup)?, setup.int("num_experiments")?);
    dataset_kernel(setup, move |_, inputs| {
        let parts = (0..inputs.len()).map(|index| input_dataset(inputs, index)).collect::<Result<Vec<_>>>()?;
        let spec = same_spec("ChooseFastestDataset", &parts, spec.clone())?;
        let cardinality = same_cardinality(&parts)?;
        Ok(ChooseFastest { parts, cardinality, experiments, spec })
    })
}

/// The types and shapes of all parts; an error if they differ. Errors call the dataset `name`.
pub(crate) fn same_spec(name: &str, parts: &[DatasetRef], mut spec: Spec) -> Result<Spec> {
    for (index, part) in parts.iter().enumerate().skip(1) {
        let found = part.spec();
        if found.types != spec.types {
            return Err(invalid!(
                "All inputs to {name} must have the same output types. Input {index} has output types: {}. Expected: {}.",
                type_names(&found.types),
                type_names(&spec.types)
            ));
        }
        if found.shapes.len() != spec.shapes.len() {
            return Err(invalid!(
                "All inputs to {name} must have compatible outputs. Input {index} has {} components. Expected to have \
                 {} components.",
                found.shapes.len(),
                spec.shapes.len()
            ));
        }
        for (component, (shape, found)) in spec.shapes.iter_mut().zip(&found.shapes).enumerate() {
            *shape = shape.merge(found).map_err(|_| {
                invalid!(
                    "All inputs to {name} must have compatible output shapes. Component {component} of input {index} \
                     has shape: {found}. Expected to be compatible with shape: {shape}."
                )
            })?;
        }
    }
    Ok(spec)
}

fn same_cardinality(parts: &[DatasetRef]) -> Result<Cardinality> {
    let mut common = Cardinality::Unknown;
    for (index, part) in parts.iter().enumerate() {
        match part.cardinality() {
            Cardinality::Unknown => {}
            found if common == Cardinality::Unknown => common = found,
            found if found != common => {
                return Err(invalid!(
                    "All inputs to ChooseFastestDataset must have compatible cardinalities. Input {index} has \
                     cardinality: {}, while all prior inputs have cardinality: {}.",
                    found.number(),
                    common.number()
                ));
            }
            _ => {}
        }
    }
    Ok(common)
}

struct ChooseFastest {
    parts: Vec<DatasetRef>,
    cardinality: Cardinality,
    experiments: i64,
    spec: Spec,
}

impl Dataset for ChooseFastest {
    fn kind(&self) -> &'static str {
        "ChooseFastest"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        self.parts.clone()
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let inputs = self.parts.iter().enumerate().map(|(index, part)| place.input_at(part, index));
        Ok(Box::new(ChooseFastestIterator {
            inputs: inputs.collect::<Result<Vec<_>>>()?,
            chosen: None,
            experiments: self.experiments,
            done: 0,
            running: Vec::new(),
            timings: Timings::new(self.parts.len()),
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.cardinality
    }
}

struct ChooseFastestIterator {
    inputs: Vec<Input>,
    /// The input that was chosen; the others have ended.
    chosen: Option<usize>,
    experiments: i64,
    done: i64,
    /// The current experiment: when each input was asked, and what it returned.
    running: Vec<(Instant, Option<Result<Option<Element>>>)>,
    timings: Timings,
    prefix: Arc<str>,
}

impl ChooseFastestIterator {
    /// Asks all inputs for an element, and waits for all of them. The element of the first one counts.
    fn poll_experiment(&mut self, ctx: &mut PollContext<'_>) -> Next {
        let mut is_pending = false;
        for (index, input) in self.inputs.iter_mut().enumerate() {
            if self.running.len() == index {
                self.running.push((Instant::now(), None));
            }
            let (start, result) = &mut self.running[index];
            if result.is_some() {
                continue;
            }
            match input.poll_next(ctx) {
                Poll::Pending => is_pending = true,
                Poll::Ready(next) => {
                    self.timings.add(index, start.elapsed());
                    *result = Some(next);
                }
            }
        }
        if is_pending {
            return Poll::Pending;
        }
        let first = self.running.drain(..).next().and_then(|(_, result)| result);
        Poll::Ready(first.unwrap_or(Ok(None)))
    }

    fn choose(&mut self, chosen: usize) {
        self.chosen = Some(chosen);
        for (index, input) in self.inputs.iter_mut().enumerate() {
            if index != chosen {
                input.end();
            }
        }
    }
}

impl Iterate for ChooseFastestIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.done < self.experiments {
            let next = ready!(self.poll_experiment(ctx));
            self.done += 1;
            if self.done == self.experiments {
                self.choose(self.timings.fastest());
            }
            return Poll::Ready(next);
        }
        if self.chosen.is_none() {
            self.choose(self.timings.fastest());
        }
        match self.chosen.and_then(|chosen| self.inputs.get_mut(chosen)) {
            Some(input) => input.poll_next(ctx),
            None => Poll::Ready(Ok(None)),
        }
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.inputs.iter_mut().flat_map(Input::as_list).collect()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        writer.int(prefix, &full_name(prefix, "experiment_counter"), self.done);
        writer.int(prefix, &full_name(prefix, "fastest_index"), self.chosen.map_or(-1, |chosen| chosen as i64));
        if self.inputs.iter().all(Input::has_ended) {
            writer.string(prefix, &full_name(prefix, "input_impls_empty"), "");
        }
        self.inputs.iter().try_for_each(|input| input.save_present(writer))
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.prefix.clone();
        self.done = reader.count(&prefix, "experiment_counter")? as i64;
        if let Ok(chosen) = usize::try_from(reader.int(&prefix, "fastest_index")?) {
            self.choose(chosen);
        }
        if reader.contains(&prefix, "input_impls_empty") {
            self.inputs.iter_mut().for_each(Input::end);
        }
        self.inputs.iter_mut().try_for_each(|input| input.restore_present(reader))
    }
}

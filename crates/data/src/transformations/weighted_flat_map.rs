//! WeightedFlatMapDataset: elements of several datasets one after the other, in numbers that follow weights.

use super::choose_fastest::same_spec;
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar, spec};
use crate::{
    Cardinality, Dataset, DatasetRef, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "WeightedFlatMapDataset(input_datasets: N * variant, weights: M * double) -> handle: variant; N: int >= 2; \
          M: int >= 2; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = \"\"",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    let (count, weights) = (setup.int("N")?, setup.int("M")?);
    dataset_kernel(setup, move |_, inputs| {
        if count != weights {
            return Err(invalid!(
                "`input_datasets` and `weights` of the WeightedFlatMap must have the same size. Got {count} datasets \
                 and {weights} weights."
            ));
        }
        let count = count as usize;
        let parts = (0..count).map(|index| input_dataset(inputs, index)).collect::<Result<Vec<_>>>()?;
        let spec = same_spec("WeightedFlatMap", &parts, spec.clone())?;
        let known =
            parts.iter().enumerate().map(|(index, part)| known_count(index, part)).collect::<Result<Vec<_>>>()?;
        let weights = (0..count).map(|index| weight(inputs, count, index)).collect::<Result<Vec<_>>>()?;
        Ok(WeightedFlatMap { counts: shares(&known, &weights)?, parts, spec })
    })
}

fn known_count(index: usize, part: &DatasetRef) -> Result<u64> {
    let what = match part.cardinality() {
        Cardinality::Finite(count) => return Ok(count),
        Cardinality::Infinite => "INFINITE",
        Cardinality::Unknown => "UNKNOWN",
    };
    Err(invalid!("Cardinalities of the inputs must be known. Input {index} has {what} cardinality."))
}

fn weight(inputs: &mut op::Inputs, first: usize, index: usize) -> Result<f64> {
    let weight: f64 = scalar(inputs, first + index, "weights")?;
    match weight > 0.0 {
        true => Ok(weight),
        false => Err(invalid!("`weights` must be greater than 0.0. Input {index} has a weight of {weight}")),
    }
}

/// How many elements each input gives, such that one of them is used up and the numbers are in the ratio of the weights.
fn shares(counts: &[u64], weights: &[f64]) -> Result<Vec<u64>> {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let scaled = counts.iter().zip(weights).map(|(&count, &weight)| count as f64 * weight / largest);
    let (mut limit, mut limit_weight) = (f64::MAX, largest);
    for (scaled, &weight) in scaled.zip(weights) {
        if scaled < limit {
            (limit, limit_weight) = (scaled, weight);
        }
    }
    let share = |(index, (&count, &weight)): (usize, (&u64, &f64))| {
        let share = (limit * weight / limit_weight) as u64;
        match share > count {
            true => {
                Err(invalid!("Input {index} needs to have at least {share} elements. It only has {count} elements."))
            }
            false => Ok(share),
        }
    };
    counts.iter().zip(weights).enumerate().map(share).collect()
}

struct WeightedFlatMap {
    parts: Vec<DatasetRef>,
    /// The number of elements that each input gives.
    counts: Vec<u64>,
    spec: Spec,
}

impl Dataset for WeightedFlatMap {
    fn kind(&self) -> &'static str {
        "WeightedFlatMap"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        self.parts.clone()
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let inputs = self.parts.iter().enumerate().map(|(index, part)| place.input_at(part, index));
        Ok(Box::new(WeightedFlatMapIterator {
            inputs: inputs.collect::<Result<Vec<_>>>()?,
            returned: vec![0; self.parts.len()],
            dataset: self,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Finite(self.counts.iter().fold(0, |sum, &count| sum.saturating_add(count)))
    }
}

struct WeightedFlatMapIterator {
    inputs: Vec<Input>,
    /// The number of elements that each input has given.
    returned: Vec<u64>,
    dataset: Arc<WeightedFlatMap>,
    prefix: Arc<str>,
}

impl Iterate for WeightedFlatMapIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        let mut pairs = self.returned.iter().zip(&self.dataset.counts);
        let Some(index) = pairs.position(|(returned, count)| returned < count) else { return Poll::Ready(Ok(None)) };
        let next = ready!(self.inputs[index].poll_next(ctx));
        self.returned[index] += u64::from(next.is_ok());
        Poll::Ready(next)
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.inputs.iter_mut().flat_map(Input::as_list).collect()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        writer.int(prefix, "input_num_elements", self.returned.iter().sum::<u64>() as i64);
        for (index, (input, &returned)) in self.inputs.iter().zip(&self.returned).enumerate() {
            writer.int(prefix, &format!("input_num_elements[{index}]"), returned as i64);
            input.save_present(writer)?;
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.prefix.clone();
        for (index, (input, returned)) in self.inputs.iter_mut().zip(&mut self.returned).enumerate() {
            *returned = reader.count(&prefix, &format!("input_num_elements[{index}]"))? as u64;
            input.restore_present(reader)?;
        }
        Ok(())
    }
}

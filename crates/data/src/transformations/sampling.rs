//! SamplingDataset: a random part of the elements.

use super::saved::{read_input, write_input};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar};
use crate::{
    Cardinality, Dataset, DatasetRef, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
    full_name,
};
use math::philox::Philox;
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::Result;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SamplingDataset(input_dataset: variant, rate: float, seed: int64, seed2: int64) -> handle: variant; \
          output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dataset_kernel(setup, |_, inputs| {
        let seeds = (scalar(inputs, 2, "seed")?, scalar(inputs, 3, "seed2")?);
        Ok(Sampling { input: input_dataset(inputs, 0)?, rate: scalar(inputs, 1, "rate")?, seeds })
    })
}

struct Sampling {
    input: DatasetRef,
    rate: f32,
    seeds: (i64, i64),
}

impl Dataset for Sampling {
    fn kind(&self) -> &'static str {
        "Sampling"
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let seeds = if self.seeds == (0, 0) { (entropy(), entropy()) } else { self.seeds };
        let input = place.input(&self.input)?;
        Ok(Box::new(SamplingIterator { input, rate: self.rate, seeds, drawn: 0, prefix: place.prefix.clone() }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

/// An unpredictable number.
fn entropy() -> i64 {
    RandomState::new().hash_one(0u64) as i64
}

struct SamplingIterator {
    input: Input,
    rate: f32,
    seeds: (i64, i64),
    /// The number of random numbers that were drawn.
    drawn: u64,
    prefix: Arc<str>,
}

impl SamplingIterator {
    /// The next number of the stream, in [0, 1).
    fn draw(&mut self) -> f32 {
        let stream = Philox::from_seeds(self.seeds.0 as u64, self.seeds.1 as u64);
        let word = stream.block(self.drawn / 4)[(self.drawn % 4) as usize];
        self.drawn += 1;
        f32::from_bits(0x3f80_0000 | word & 0x007f_ffff) - 1.0
    }
}

impl Iterate for SamplingIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        loop {
            let Some(element) = ready!(self.input.poll_next(ctx))? else { return Poll::Ready(Ok(None)) };
            if self.draw() < self.rate {
                return Poll::Ready(Ok(Some(element)));
            }
        }
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        writer.int(prefix, &full_name(prefix, "num_random_samples"), self.drawn as i64);
        writer.int(prefix, &full_name(prefix, "seed"), self.seeds.0);
        writer.int(prefix, &full_name(prefix, "seed2"), self.seeds.1);
        write_input(writer, prefix, &self.input)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.prefix.clone();
        self.drawn = reader.count(&prefix, "num_random_samples")? as u64;
        self.seeds = (reader.int(&prefix, "seed")?, reader.int(&prefix, "seed2")?);
        read_input(reader, &prefix, &mut self.input)
    }
}

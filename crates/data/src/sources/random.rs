//! RandomDataset and RandomDatasetV2: pseudo-random numbers without end.

use crate::attrs::{DATASET, dataset_kernel};
use crate::transformations::seed_generator::{Samples, SeedGenerator, seeds};
use crate::{Cardinality, Dataset, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter, full_name};
use op::shapes;
use op::{Grad, Home, Inputs, Kernel, Op, Setup};
use smallvec::smallvec;
use status::Result;
use std::sync::Arc;
use std::task::Poll;
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "RandomDataset(seed: int64, seed2: int64) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; metadata: string = \"\"; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, false),
        facts: DATASET,
    },
    Op {
        def: "RandomDatasetV2(seed: int64, seed2: int64, seed_generator: resource) -> handle: variant; \
              rerandomize_each_iteration: bool = false; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; metadata: string = \"\"; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, true),
        facts: DATASET,
    },
    Op {
        def: "ExperimentalRandomDataset(seed: int64, seed2: int64) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, false),
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>, has_generator: bool) -> Result<Kernel> {
    let home = Home::of(setup);
    let changes = has_generator && setup.bool("rerandomize_each_iteration")?;
    dataset_kernel(setup, move |_, inputs| {
        let make = |inputs: &mut Inputs| Ok(SeedGenerator::new(seeds(inputs, 0)?, changes));
        let generator = match has_generator {
            true => SeedGenerator::of_input(&home, inputs, 2, make)?,
            false => Arc::new(make(inputs)?),
        };
        let spec = Spec { types: vec![DType::I64], shapes: vec![PartialShape::scalar()] };
        Ok(Random { generator, spec })
    })
}

struct Random {
    generator: Arc<SeedGenerator>,
    spec: Spec,
}

impl Dataset for Random {
    fn kind(&self) -> &'static str {
        "Random"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let seeds = self.generator.next();
        Ok(Box::new(RandomIterator {
            dataset: self,
            seeds,
            samples: Samples::new(seeds, 0),
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Infinite
    }
}

struct RandomIterator {
    dataset: Arc<Random>,
    seeds: [i64; 2],
    samples: Samples,
    prefix: Arc<str>,
}

impl Iterate for RandomIterator {
    fn poll_next(&mut self, _: &mut PollContext<'_>) -> Next {
        let number = i64::from(self.samples.next());
        Poll::Ready(Ok(Some(smallvec![Tensor::scalar(number)])))
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let mut int = |key: &str, value: i64| writer.int(&self.prefix, &full_name(&self.prefix, key), value);
        int("epoch_num_random_samples", self.dataset.generator.drawn() as i64);
        int("num_random_samples", self.samples.drawn() as i64);
        int("seed", self.seeds[0]);
        int("seed2", self.seeds[1]);
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.dataset.generator.set_drawn(reader.int(&self.prefix, "epoch_num_random_samples")? as u64);
        self.seeds = [reader.int(&self.prefix, "seed")?, reader.int(&self.prefix, "seed2")?];
        self.samples = Samples::new(self.seeds, reader.int(&self.prefix, "num_random_samples")? as u64);
        Ok(())
    }
}

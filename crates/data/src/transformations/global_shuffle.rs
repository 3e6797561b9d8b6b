//! GlobalShuffleDataset: the elements of a dataset with random access in the order of a random permutation, without a
//! buffer.

use super::seed_generator::{SeedGenerator, seeds};
use crate::attrs::{DATASET, dataset_kernel, input_dataset};
use crate::dataset::only;
use crate::iterate::IndexMapper;
use crate::{
    Cardinality, Dataset, DatasetRef, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter, fold,
};
use op::shapes;
use op::{Grad, Home, Kernel, Op, Setup};
use ops::random::shuffled;
use status::{Code, Error, Result, failed_precondition, invalid, out_of_range};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "GlobalShuffleDataset(input_dataset: variant, seed: int64, seed2: int64, seed_generator: resource) -> \
          handle: variant; reshuffle_each_iteration: bool = true; output_types: list(type) >= 1; \
          output_shapes: list(shape) >= 1; metadata: string = \"\"; stateful",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

/// The rounds of the permutation, as in TensorFlow.
const ROUNDS: usize = 8;

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    let reshuffles = setup.bool("reshuffle_each_iteration")?;
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        check_input(&input)?;
        let given = seeds(inputs, 1)?;
        let generator = SeedGenerator::of_input(&home, inputs, 3, |_| Ok(SeedGenerator::new(given, reshuffles)))?;
        Ok(GlobalShuffle { input, generator })
    })
}

/// An error unless any order of the elements can be chosen.
fn check_input(input: &DatasetRef) -> Result<()> {
    let compatible = fold(input, &mut |dataset, inputs: Vec<Result<()>>| dataset.check_random_indexing(inputs));
    compatible.map_err(|error| {
        failed_precondition!(
            "`global_shuffle` requires all upstream transformations be compatible with random access. Got: {}",
            described(&error)
        )
    })?;
    match input.cardinality().number() {
        ..=0 => Err(invalid!(
            "`global_shuffle` requires the input dataset to have a non-empty finite cardinality. Got cardinality {} for \
             dataset {}DatasetOp::Dataset",
            input.cardinality().number(),
            debug_kind(input.kind())
        )),
        _ => Ok(()),
    }
}

/// The kind of a dataset as TensorFlow describes it: `Skip` for `FiniteSkip`.
fn debug_kind(kind: &str) -> &str {
    ["Finite", "Forever", "Empty"].iter().find_map(|prefix| kind.strip_prefix(prefix)).unwrap_or(kind)
}

/// An error with its code in TensorFlow's form.
fn described(error: &Error) -> String {
    let code = match error.code {
        Code::Unimplemented => "UNIMPLEMENTED",
        _ => "FAILED_PRECONDITION",
    };
    format!("{code}: {}", error.message)
}

#[derive(Clone)]
struct GlobalShuffle {
    input: DatasetRef,
    generator: Arc<SeedGenerator>,
}

impl Dataset for GlobalShuffle {
    fn kind(&self) -> &'static str {
        "GlobalShuffle"
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(GlobalShuffle { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let [first, second] = self.generator.next();
        let [third, _] = self.generator.next();
        Ok(Box::new(GlobalShuffleIterator {
            input: place.input(&self.input)?,
            seeds: [first, second, third],
            drawn: self.generator.drawn() as i64,
            returned: 0,
            dataset: self,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn check_random_indexing(&self, _: Vec<Result<()>>) -> Result<()> {
        Ok(())
    }
}

struct GlobalShuffleIterator {
    input: Input,
    /// What the permutation follows from.
    seeds: [i64; 3],
    /// How many random numbers the generator had drawn after these seeds.
    drawn: i64,
    /// How often an element was requested.
    returned: i64,
    dataset: Arc<GlobalShuffle>,
    prefix: Arc<str>,
}

const SEEDS: [&str; 3] = ["seed", "seed2", "seed3"];

impl GlobalShuffleIterator {
    /// Maps positions by the permutation, after another global shuffle has mapped them.
    fn mapper(&self, outer: Option<IndexMapper>) -> IndexMapper {
        let key = self.seeds.map(|seed| seed as u32);
        let last = match self.dataset.input.cardinality() {
            Cardinality::Finite(count) => count.saturating_sub(1),
            _ => 0,
        };
        Arc::new(move |position| {
            let position = outer.as_ref().map_or(Ok(position), |outer| outer(position))? as u64;
            if position > last {
                return Err(out_of_range!("Out of range"));
            }
            Ok(shuffled(position, key, last, ROUNDS) as usize)
        })
    }
}

impl Iterate for GlobalShuffleIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        let mapper = self.mapper(ctx.index_mapper.clone());
        let mut inner = PollContext { index_mapper: Some(mapper), ..PollContext::new(ctx.pipeline, ctx.waker) };
        let next = ready!(self.input.poll_kept(&mut inner))?;
        self.returned = self.returned.saturating_add(1);
        Poll::Ready(Ok(next))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        writer.int(&self.prefix, "element_count", self.returned);
        writer.int(&self.prefix, "epoch_num_random_samples", self.drawn);
        for (key, seed) in SEEDS.into_iter().zip(self.seeds) {
            writer.int(&self.prefix, key, seed);
        }
        self.input.save_present(writer)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.returned = reader.int(&self.prefix, "element_count")?;
        self.drawn = reader.int(&self.prefix, "epoch_num_random_samples")?;
        self.dataset.generator.set_drawn(self.drawn as u64);
        for (key, seed) in SEEDS.into_iter().zip(&mut self.seeds) {
            *seed = reader.int(&self.prefix, key)?;
        }
        self.input.restore_present(reader)
    }
}

//! Seed generators: resources that give each epoch of a shuffled dataset its seeds.

use crate::attrs::scalar;
use math::philox::Philox;
use op::shapes;
use op::{ANONYMOUS, Grad, Home, Inputs, Kernel, Op, PLAIN, Resource, Setup, handle_of, many, outputs, source};
use parking_lot::Mutex;
use status::{Result, internal, invalid, unimplemented_op};
use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use tensor::{ResourceHandle, Shape, Tensor, Variant, VariantData, VariantObject};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "AnonymousSeedGenerator(seed: int64, seed2: int64, reshuffle: bool) -> handle: resource, deleter: variant; \
              stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: anonymous_kernel,
        facts: PLAIN,
    },
    Op {
        def: "AnonymousRandomSeedGenerator(seed: int64, seed2: int64) -> handle: resource, deleter: variant; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: random_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DeleteSeedGenerator(handle: resource, deleter: variant); stateful",
        shape: shapes::none,
        grad: Grad::Stop,
        kernel: delete_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DeleteRandomSeedGenerator(handle: resource, deleter: variant); stateful",
        shape: shapes::none,
        grad: Grad::Stop,
        kernel: delete_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DummySeedGenerator() -> handle: resource; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: dummy_kernel,
        facts: PLAIN,
    },
];

fn anonymous_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |ctx, mut inputs| {
        let seeds = seeds(&mut inputs, 0)?;
        let reshuffles = scalar(&mut inputs, 2, "reshuffle")?;
        let name = home.resources().unique_name("SeedGenerator");
        home.resources().create(ANONYMOUS, &name, Arc::new(SeedGenerator::new(seeds, reshuffles)))?;
        let handle = home.handle::<SeedGenerator>(ANONYMOUS, &name, Vec::new());
        let owner = Owner { home: home.clone(), name: name.clone() };
        ctx.step_resources().create("", &name, Arc::new(owner))?;
        Ok(outputs![
            Tensor::from_handles(Shape::scalar(), vec![handle])?,
            Tensor::from_variants(Shape::scalar(), vec![Variant::Object(Arc::new(Deleter))])?,
        ])
    }))
}

/// TensorFlow's kernel reads an input that this op does not have.
fn random_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, _| Err(invalid!("Unknown input name: reshuffle"))))
}

fn delete_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |_, inputs| {
        let handle = handle_of(inputs.look(0)?)?;
        if handle.container == ANONYMOUS {
            return Err(internal!(
                "Cannot delete an unowned Resource {ANONYMOUS}/{}/<unknown> from ResourceMgr. This indicates \
                 ref-counting ResourceHandle is exposed to weak ResourceHandle code paths.",
                handle.name
            ));
        }
        home.destroy(handle)?;
        Ok(outputs![])
    }))
}

/// A handle for graphs whose datasets make generators of their own.
fn dummy_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(source(move |_| {
        let handle =
            ResourceHandle { container: String::new(), ..home.handle::<Dummy>("", "dummy_resource", Vec::new()) };
        Tensor::from_handles(Shape::scalar(), vec![handle])
    }))
}

/// The type of dummy handles.
struct Dummy;

impl Resource for Dummy {
    const TYPE_NAME: &'static str = "N10tensorflow4data13SeedGeneratorE";
}

/// Removes a generator at the end of the step that created it. Datasets hold what they use.
struct Owner {
    home: Home,
    name: String,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.home.resources().remove::<SeedGenerator>(ANONYMOUS, &self.name);
    }
}

/// The second output of ops that create a generator. It does nothing, as in TensorFlow.
#[derive(Debug)]
struct Deleter;

impl VariantObject for Deleter {
    fn encode(&self) -> Result<VariantData> {
        Err(unimplemented_op!("The deleter of a seed generator cannot be sent to another task or fetched"))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The two seeds in inputs `first` and `first + 1`; random ones if both are zero, as in TensorFlow.
pub(crate) fn seeds(inputs: &mut Inputs, first: usize) -> Result<[i64; 2]> {
    match [scalar(inputs, first, "seed")?, scalar(inputs, first + 1, "seed2")?] {
        [0, 0] => Ok([entropy(), entropy()]),
        seeds => Ok(seeds),
    }
}

fn entropy() -> i64 {
    RandomState::new().hash_one(0u64) as i64
}

/// Gives seeds to iterators; all iterators with one generator share its state.
pub(crate) struct SeedGenerator {
    seeds: [i64; 2],
    reshuffles: bool,
    /// How many random numbers were drawn; it identifies the next ones.
    drawn: Mutex<u64>,
}

impl Resource for SeedGenerator {
    const TYPE_NAME: &'static str = "N10tensorflow4data20SeedGeneratorManagerE";
}

impl SeedGenerator {
    /// A generator that gives the same seeds each time, or different ones that follow from `seeds`.
    pub fn new(seeds: [i64; 2], reshuffles: bool) -> SeedGenerator {
        SeedGenerator { seeds, reshuffles, drawn: Mutex::new(0) }
    }

    /// A generator with random seeds.
    pub fn random() -> SeedGenerator {
        SeedGenerator::new([entropy(), entropy()], true)
    }

    /// The generator that `make` creates, unless the handle in input `index` refers to one.
    pub fn of_input(
        home: &Home,
        inputs: &mut Inputs,
        index: usize,
        make: impl FnOnce(&mut Inputs) -> Result<SeedGenerator>,
    ) -> Result<Arc<SeedGenerator>> {
        let handle = handle_of(inputs.look(index)?)?;
        match home.resources().get(&handle.container, &handle.name) {
            Some(found) => Ok(found),
            None => Ok(Arc::new(make(inputs)?)),
        }
    }

    /// The seeds of random access. TensorFlow's generator of equal seeds gives the first one twice.
    pub fn first_seeds(&self) -> [i64; 2] {
        let [first, second] = self.seeds;
        [first, if self.reshuffles { second } else { first }]
    }

    /// The seeds of the next epoch.
    pub fn next(&self) -> [i64; 2] {
        let mut drawn = self.drawn.lock();
        if !self.reshuffles {
            *drawn += 1;
            return self.seeds;
        }
        let mut numbers = Samples::new(self.seeds, *drawn);
        *drawn = drawn.wrapping_add(2);
        [i64::from(numbers.next()), i64::from(numbers.next())]
    }

    /// How many random numbers were drawn, for checkpoints.
    pub fn drawn(&self) -> u64 {
        *self.drawn.lock()
    }

    /// Continues after this many random numbers.
    pub fn set_drawn(&self, drawn: u64) {
        *self.drawn.lock() = drawn;
    }
}

/// The random numbers of two seeds, one by one.
pub(crate) struct Samples {
    stream: Philox,
    drawn: u64,
    block: [u32; 4],
}

impl Samples {
    /// The numbers after the first `drawn`.
    pub fn new([seed, seed2]: [i64; 2], drawn: u64) -> Samples {
        let stream = Philox::from_seeds(seed as u64, seed2 as u64);
        Samples { block: stream.block(drawn / 4), stream, drawn }
    }

    /// The next number.
    pub fn next(&mut self) -> u32 {
        let lane = (self.drawn % 4) as usize;
        if lane == 0 {
            self.block = self.stream.block(self.drawn / 4);
        }
        self.drawn = self.drawn.wrapping_add(1);
        self.block[lane]
    }

    /// How many numbers were drawn.
    pub fn drawn(&self) -> u64 {
        self.drawn
    }
}

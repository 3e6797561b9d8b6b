//! What stages read ahead of their consumer is bounded by the memory that it takes.

use crate::budget::{CHOSEN_BYTES, STAGE_BYTES};
use crate::iterators::MultiDeviceIterator;
use crate::transformations::prefetch;
use crate::{
    Ahead, Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Options, Pipeline, Place, PollContext,
    Sizing, Spec, StateReader, StateWriter,
};
use graph::{Function, NodeDef, Signature};
use math::Pool;
use op::{Callable, Functions, Home, Resources, Setup, StepEnv};
use parking_lot::Mutex;
use smallvec::smallvec;
use status::{Result, invalid, not_found};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use tensor::{DType, PartialShape, Tensor};

struct NoFunctions;

impl Functions for NoFunctions {
    fn instantiate(&self, function: &Function, _: &str) -> Result<Arc<dyn Callable>> {
        Err(not_found!("{}", function.name))
    }
}

fn home() -> Home {
    let (def, signature) = (NodeDef::default(), Signature::parse("Op()").unwrap());
    let resources = Arc::new(Resources::new("localhost"));
    Home::of(&Setup::new(&def, &signature, (&[], &[]), "/device:CPU:0", &resources, &NoFunctions))
}

type Job = Box<dyn FnOnce() + Send>;

/// A pipeline without threads: stages in the background run while the consumer waits, until they stop at their bounds.
struct Machine {
    pipeline: Arc<Pipeline>,
    jobs: Arc<Mutex<VecDeque<Job>>>,
}

impl Machine {
    fn new(options: Options) -> Machine {
        let mut env = Arc::into_inner(StepEnv::alone(Arc::new(Pool::new(1)))).unwrap();
        let jobs = Arc::<Mutex<VecDeque<Job>>>::default();
        let queue = jobs.clone();
        env.spawn = Arc::new(move |job| queue.lock().push_back(job));
        Machine { pipeline: Arc::new(Pipeline::with_options(&home(), &env, options)), jobs }
    }

    fn autotuned(ram_budget: Option<u64>) -> Machine {
        Machine::new(Options { autotune: true, ram_budget, ..Options::default() })
    }

    fn run_jobs(&self) {
        while let Some(job) = { self.jobs.lock().pop_front() } {
            job();
        }
    }

    /// Takes `count` results. The stages in the background run only when there is none yet.
    fn take(&self, count: usize, mut poll: impl FnMut(&mut PollContext<'_>) -> Next) {
        let mut ctx = PollContext::new(&self.pipeline, Waker::noop());
        for _ in 0..count {
            if poll(&mut ctx).is_pending() {
                self.run_jobs();
                assert!(poll(&mut ctx).is_ready(), "the consumer waits for ever");
            }
        }
        self.run_jobs();
    }
}

/// Returns the same tensor, or the same error, without end, and counts how often.
#[derive(Clone)]
struct Endless {
    value: Result<Tensor>,
    reads: Arc<AtomicUsize>,
    spec: Spec,
}

impl Endless {
    fn new(value: Result<Tensor>) -> Endless {
        let (dtype, shape) = value.as_ref().map_or((DType::I64, PartialShape::unknown()), |value| {
            (value.dtype(), PartialShape::new(&value.shape().to_i64()))
        });
        Endless { value, reads: Arc::default(), spec: Spec { types: vec![dtype], shapes: vec![shape] } }
    }

    fn of_bytes(bytes: usize) -> Endless {
        Endless::new(Tensor::zeros_of(DType::U8, [bytes]))
    }

    fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    fn dataset(&self) -> DatasetRef {
        Arc::new(self.clone())
    }

    fn input(&self, pipeline: &Arc<Pipeline>) -> Input {
        let dataset = self.dataset();
        Place::root(pipeline, "Iterator", &dataset).input(&dataset).unwrap()
    }
}

impl Dataset for Endless {
    fn kind(&self) -> &'static str {
        "Endless"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn iterate(self: Arc<Self>, _: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new((*self).clone()))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Infinite
    }
}

impl Iterate for Endless {
    fn poll_next(&mut self, _: &mut PollContext<'_>) -> Next {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(self.value.clone().map(|tensor| Some(smallvec![tensor])))
    }

    fn save(&self, _: &mut StateWriter) -> Result<()> {
        Ok(())
    }

    fn restore(&mut self, _: &Arc<StateReader>) -> Result<()> {
        Ok(())
    }
}

#[test]
fn small_elements_and_errors_count_with_all_that_belongs_to_them() {
    const MIB: usize = 1 << 20;
    let values = [
        Ok(Tensor::scalar(1i64)),
        Tensor::zeros_of(DType::F32, [0]),
        Tensor::from_strings([0], vec![]),
        Err(invalid!("a file is missing")),
    ];
    for value in values {
        let (machine, endless) = (Machine::autotuned(None), Endless::new(value));
        let share = machine.pipeline.budget().share(Sizing::Given, MIB);
        let mut ahead = Ahead::new(&machine.pipeline, endless.input(&machine.pipeline), usize::MAX, share);
        machine.take(1, |ctx| ahead.poll_next(ctx));
        let most = MIB / size_of::<Element>() + 2;
        assert!((100..=most).contains(&endless.reads()), "{} elements were read ahead", endless.reads());
        machine.take(2 * most, |ctx| ahead.poll_next(ctx));
    }
}

#[test]
fn stages_share_the_budget_of_their_pipeline() {
    const ELEMENT: usize = 100_000;
    let (machine, endless) = (Machine::autotuned(Some(1_000_000)), Endless::of_bytes(ELEMENT));
    let pipeline = &machine.pipeline;
    let ahead = |limit| {
        let share = pipeline.budget().share(Sizing::Chosen, usize::MAX);
        Ahead::new(pipeline, endless.input(pipeline), limit, share)
    };
    let mut stages: Vec<Ahead> = (0..20).map(|_| ahead(1000)).collect();
    for _ in 0..50 {
        stages.iter_mut().for_each(|stage| machine.take(1, |ctx| stage.poll_next(ctx)));
        let most = 1_000_000 + 21 * 2 * ELEMENT; // one element for each stage is always allowed
        assert!(pipeline.budget().used() < most, "{} bytes are buffered", pipeline.budget().used());
    }
    drop(stages);
    assert_eq!(pipeline.budget().used(), 0);
}

/// How many elements a prefetch of a chosen size has read ahead after `taken` elements.
fn read_ahead(machine: &Machine, endless: &Endless, taken: usize) -> usize {
    let dataset = prefetch::chosen(endless.dataset());
    let mut iterator = dataset.clone().iterate(&Place::root(&machine.pipeline, "Iterator", &dataset)).unwrap();
    machine.take(taken, |ctx| iterator.poll_next(ctx));
    endless.reads() - taken
}

#[test]
fn a_chosen_buffer_grows_while_the_consumer_waits_and_stays_in_the_budget() {
    assert!(read_ahead(&Machine::autotuned(None), &Endless::of_bytes(8), 1) <= 2);
    assert!(read_ahead(&Machine::autotuned(None), &Endless::of_bytes(8), 1000) >= 100);
    assert!(read_ahead(&Machine::autotuned(Some(1_000_000)), &Endless::of_bytes(100_000), 1000) <= 11);
    let large = read_ahead(&Machine::autotuned(None), &Endless::of_bytes(1 << 20), 10_000);
    assert!((50..=CHOSEN_BYTES >> 20).contains(&large), "{large} elements of 1 MiB were read ahead");
}

#[test]
fn a_chosen_buffer_does_not_change_without_autotuning() {
    let fixed = Machine::new(Options::default());
    let [few, many] = [1, 1000].map(|taken| read_ahead(&fixed, &Endless::of_bytes(8), taken));
    assert!(few <= 8 && many <= 8, "{few} and then {many} elements were read ahead");
}

#[test]
fn an_iterator_of_several_devices_fills_its_buffers_up_to_a_bound() {
    let endless = Endless::of_bytes(1 << 23);
    let iterator = MultiDeviceIterator::new(endless.spec.clone(), 2);
    let env = StepEnv::alone(Arc::new(Pool::new(1)));
    let incarnation = iterator.begin(&home(), &env, endless.dataset(), usize::MAX).unwrap();
    let answers = Arc::new(AtomicUsize::new(0));
    for expected in 1..=300 {
        let counter = answers.clone();
        let answer = move |next: Result<Option<Element>>| {
            assert!(matches!(next, Ok(Some(_))));
            counter.fetch_add(1, Ordering::Relaxed);
        };
        let _ = iterator.next(1, incarnation, Box::new(answer));
        assert_eq!(answers.load(Ordering::Relaxed), expected, "a device that asks gets its element");
        let most = ((STAGE_BYTES + CHOSEN_BYTES) >> 23) + 2 * expected + 3;
        assert!(endless.reads() <= most, "{} elements of 8 MiB were read after {expected}", endless.reads());
    }
}

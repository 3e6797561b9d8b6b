//! Work grows in proportion to the size of a graph. It is counted, not timed: allocations and their bytes.

use flowgrid::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The allocator of the system, which counts what all threads ask for.
struct Counting {
    calls: AtomicUsize,
    bytes: AtomicUsize,
}

impl Counting {
    fn count(&self, bytes: usize) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed unchanged to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.count(size);
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting { calls: AtomicUsize::new(0), bytes: AtomicUsize::new(0) };

/// Held by the test that counts, because all threads share the counters.
static TURN: Mutex<()> = Mutex::new(());

/// The sizes that are compared, and the factor between them.
const SIZES: [usize; 2] = [1_000, 10_000];
/// How much more the larger size may need: a little more than the factor between the sizes, because tables grow by
/// doubling. Quadratic work needs a hundred times as much.
const LIMIT: f64 = 13.0;

/// The allocations of each phase of some work.
#[derive(Default)]
struct Phases(Vec<(&'static str, [usize; 2])>);

impl Phases {
    fn count<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let now = || [&ALLOCATOR.calls, &ALLOCATOR.bytes].map(|counter| counter.load(Ordering::Relaxed));
        let before = now();
        let result = work();
        let after = now();
        self.0.push((name, [0, 1].map(|i| after[i] - before[i])));
        result
    }
}

/// Does the work at both sizes, and compares what its phases allocate.
fn check(work: impl Fn(usize, &mut Phases)) {
    let _turn = TURN.lock().unwrap_or_else(|lock| lock.into_inner());
    let [small, large] = SIZES.map(|size| {
        let mut phases = Phases::default();
        work(size, &mut phases);
        phases.0
    });
    let growth = small.iter().zip(&large).map(|((name, small), (_, large))| {
        let ratios = [0, 1].map(|i| large[i] as f64 / small[i].max(1_000) as f64);
        (*name, ratios)
    });
    let growth: Vec<_> = growth.collect();
    let excessive: Vec<_> = growth.iter().filter(|(_, ratios)| ratios.iter().any(|ratio| *ratio > LIMIT)).collect();
    assert!(excessive.is_empty(), "calls and bytes grow too fast: {excessive:?} of {growth:?}");
}

/// Runs a step twice: the first one prunes, lowers, places, partitions, simplifies and compiles the graph.
fn steps(phases: &mut Phases, session: &Session, fetches: &[Output], x: &Output) {
    let run = || session.run_with::<Vec<Tensor>>(fetches, feeds! { x => 1.0f32 }).expect("a step");
    phases.count("first step", run);
    phases.count("second step", run);
}

#[test]
fn a_long_chain_and_its_gradient() {
    check(|size, phases| {
        let graph = Graph::new();
        let x = graph.root().placeholder(DType::F32, &[]);
        let y = phases.count("building", || (0..size).fold(x.clone(), |y, _| y.sigmoid()));
        let slope = phases.count("gradient", || gradient(&y, &x).expect("a gradient"));
        let session = Session::local(&graph);
        steps(phases, &session, &[slope], &x);
    });
}

#[test]
fn many_branches_that_are_summed() {
    check(|size, phases| {
        let graph = Graph::new();
        let x = graph.root().placeholder(DType::F32, &[]);
        let branches: Vec<Output> = phases.count("building", || (0..size).map(|i| (&x * i as f64).tanh()).collect());
        let sum = flowgrid::raw_ops::add_n(&graph.root(), &branches).output();
        let slope = phases.count("gradient", || gradient(&sum, &x).expect("a gradient"));
        let session = Session::local(&graph);
        steps(phases, &session, &[sum, slope], &x);
    });
}

#[test]
fn many_variables_with_a_saver() {
    check(|size, phases| {
        let graph = Graph::new();
        let variables: Vec<Variable> = phases
            .count("building", || (0..size).map(|i| Variable::zeros(&graph.root(), &format!("v{i}"), [2])).collect());
        let initializer = phases.count("initializer", || global_variables_initializer(&graph));
        phases.count("saver", || Saver::new(&graph).expect("a saver"));
        let session = Session::local(&graph);
        phases.count("initializing", || session.execute(&initializer).expect("variables"));
        phases.count("reading", || session.run::<Vec<Tensor>>(&variables[..]).expect("values"));
    });
}

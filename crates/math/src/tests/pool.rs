//! Every chunk runs once, whatever the number of threads, of callers, and of panics.

use crate::Pool;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often each of `chunks` chunks ran.
fn counts(pool: &Pool, chunks: usize) -> Vec<usize> {
    let counts: Vec<AtomicUsize> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
    pool.run(chunks, &|chunk| {
        counts[chunk].fetch_add(1, Ordering::Relaxed);
    });
    counts.into_iter().map(AtomicUsize::into_inner).collect()
}

#[test]
fn every_chunk_runs_once() {
    for threads in [1, 2, 3, 8] {
        let pool = Pool::new(threads);
        assert_eq!(pool.threads(), threads);
        for chunks in [0, 1, 2, 3, 7, 64, 1000] {
            assert_eq!(counts(&pool, chunks), vec![1; chunks], "{threads} threads");
        }
    }
}

#[test]
fn many_callers_share_the_helpers() {
    let pool = Pool::new(3);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..500).for_each(|_| assert_eq!(counts(&pool, 9), vec![1; 9])));
        }
    });
}

#[test]
fn a_loop_may_run_a_loop() {
    let pool = Pool::new(2);
    let total = AtomicUsize::new(0);
    pool.run(8, &|_| {
        pool.run(8, &|chunk| {
            total.fetch_add(chunk, Ordering::Relaxed);
        })
    });
    assert_eq!(total.into_inner(), 8 * 28);
}

#[test]
fn a_panic_reaches_only_its_caller() {
    let pool = Pool::new(2);
    for bad in 0..20 {
        let run = || pool.run(20, &|chunk| assert_ne!(chunk, bad, "chunk of this test"));
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        assert_eq!(counts(&pool, 20), vec![1; 20]);
    }
}

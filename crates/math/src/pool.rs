//! The threads over which kernels split their loops.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Helper threads beside the calling one.
///
/// The caller always takes part in its own loop, so a pool of one has no threads at all, and a loop
/// makes progress even when every helper is busy elsewhere.
pub struct Pool {
    helpers: Option<rayon::ThreadPool>,
    threads: usize,
}

impl Pool {
    /// A pool in which a loop runs on at most `threads` threads, the calling one among them.
    pub fn new(threads: usize) -> Pool {
        let threads = threads.max(1);
        let helpers = (threads > 1).then(|| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads - 1)
                .thread_name(|i| format!("flowgrid-math-{i}"))
                .build()
                .ok()
        });
        Pool { helpers: helpers.flatten(), threads }
    }

    /// On how many threads a loop may run.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `body(i)` once for every `i` below `chunks`, in any order, on several threads at once.
    pub fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let chunk = next.fetch_add(1, Ordering::Relaxed);
                if chunk >= chunks {
                    return;
                }
                body(chunk);
            }
        };
        match &self.helpers {
            Some(pool) if chunks > 1 => pool.in_place_scope(|scope| {
                for _ in 0..(self.threads - 1).min(chunks - 1) {
                    scope.spawn(|_| work());
                }
                work();
            }),
            _ => work(),
        }
    }
}

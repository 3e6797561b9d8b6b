//! A tokio runtime as the runtime of a task, and futures of one that are polled elsewhere.

use cluster::{Runtime, Work};
use std::future::poll_fn;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs the background work of a task on a tokio runtime. The holder of the `tokio::runtime::Runtime` owns the work: it
/// is dropped with that runtime.
pub struct TokioRuntime {
    handle: Handle,
}

impl TokioRuntime {
    /// Background work on this runtime.
    pub fn new(handle: Handle) -> TokioRuntime {
        TokioRuntime { handle }
    }
}

impl Runtime for TokioRuntime {
    fn spawn(&self, work: Work) {
        self.handle.spawn(work);
    }

    fn sleep(&self, time: Duration) -> Work {
        let _inside = self.handle.enter();
        Box::pin(tokio::time::sleep(time))
    }

    fn yield_now(&self) -> Work {
        Box::pin(tokio::task::yield_now())
    }

    fn run_long(&self, work: &mut dyn FnMut()) {
        match Handle::try_current() {
            Ok(runtime) if runtime.runtime_flavor() == RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
            _ => work(),
        }
    }
}

/// Polls a future with the timers and sockets of a runtime, on whatever thread and by whatever executor it is polled.
/// Without this, a future of tokio panics outside a runtime, and hangs inside another one that is blocked.
pub fn polled_in<T>(handle: &Handle, future: impl Future<Output = T>) -> impl Future<Output = T> {
    let mut future = Box::pin(future);
    poll_fn(move |context| {
        let _inside = handle.enter();
        future.as_mut().poll(context)
    })
}

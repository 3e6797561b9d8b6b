//! What all iterators of one pipeline share.

use math::Pool;
use op::{Calls, Cancel, Extensions, Forks, Home, Received, Rendezvous, Resources, Spawn, StepEnv};
use status::{Error, Result, internal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tensor::Tensor;

/// The environment of a running pipeline: threads, the device, and the functions with their state. It outlives the step
/// that created it.
pub struct Pipeline {
    home: Home,
    spawn: Spawn,
    pool: Arc<Pool>,
    extensions: Extensions,
    cancel: Arc<Cancel>,
    pub(crate) forks: Forks,
    rendezvous: Arc<dyn Rendezvous>,
    calls: AtomicU64,
}

impl Pipeline {
    /// A pipeline on a device, with the threads of a step.
    pub fn new(home: &Home, env: &StepEnv) -> Arc<Pipeline> {
        Arc::new(Pipeline {
            home: home.clone(),
            spawn: env.spawn.clone(),
            pool: env.pool.clone(),
            extensions: env.extensions.clone(),
            cancel: Arc::default(),
            forks: Forks::default(),
            rendezvous: Arc::new(NoTransfers),
            calls: AtomicU64::new(0),
        })
    }

    /// The device.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Runs work on another thread.
    pub fn spawn(&self) -> &Spawn {
        &self.spawn
    }

    /// Threads over which loops are split.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Notifies what waits when the pipeline ends.
    pub fn cancel(&self) -> &Arc<Cancel> {
        &self.cancel
    }

    /// The number of calls or files that are worked on at once if the user leaves it to us.
    pub fn parallelism(&self) -> usize {
        self.pool.threads().max(1)
    }

    /// The environment of one call of a function. Its resources and its cancellation end with the call.
    pub(crate) fn call_env(&self) -> Arc<StepEnv> {
        Arc::new(StepEnv {
            step_id: self.calls.fetch_add(1, Ordering::Relaxed),
            pool: self.pool.clone(),
            step_resources: Arc::new(Resources::new("__per_call")),
            rendezvous: self.rendezvous.clone(),
            cancel: Arc::default(),
            spawn: self.spawn.clone(),
            extensions: self.extensions.clone(),
            stats: None,
            calls: Calls::default(),
        })
    }
}

/// The rendezvous of functions in a pipeline, which run on one device.
struct NoTransfers;

impl Rendezvous for NoTransfers {
    fn send(&self, key: &str, _: Tensor, _: bool) -> Result<()> {
        Err(internal!("{key} cannot be sent from a function of an input pipeline"))
    }

    fn recv(&self, key: &str, done: Box<dyn FnOnce(Result<Received>) + Send>) {
        done(Err(internal!("{key} cannot be received in a function of an input pipeline")));
    }

    fn abort(&self, _: Error) {}
}

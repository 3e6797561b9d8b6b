//! The context of a running kernel.

use crate::{Calls, Cancel, Extensions, Rendezvous, Resources, Stats};
use math::Pool;
use std::sync::Arc;

/// Runs work on another thread.
pub type Spawn = Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// State shared by all kernels of a step.
pub struct StepEnv {
    /// The step's number, the same on all tasks.
    pub step_id: u64,
    /// Threads over which kernels split their loops.
    pub pool: Arc<Pool>,
    /// Resources that end with the step: TensorArrays, stacks.
    pub step_resources: Arc<Resources>,
    /// Where tensors change device or task.
    pub rendezvous: Arc<dyn Rendezvous>,
    /// Notifies waiting ops when the step is cancelled.
    pub cancel: Arc<Cancel>,
    /// Runs work on another thread: function bodies, continuations.
    pub spawn: Spawn,
    /// Values that belong to the step's session, for kernels that know their types.
    pub extensions: Extensions,
    /// Collects run times of nodes, including those in functions, if the step is traced.
    pub stats: Option<Arc<Stats>>,
    /// The calls of functions that lead here, and those that wait.
    pub calls: Calls,
}

/// The context of one run of a kernel.
#[derive(Clone, Copy)]
pub struct Ctx<'a> {
    /// The step.
    pub env: &'a Arc<StepEnv>,
    /// The frame the node runs in, as encoded in rendezvous keys.
    pub frame: u64,
    /// The iteration of that frame.
    pub iteration: u64,
}

impl Ctx<'_> {
    /// Threads over which to split loops.
    pub fn pool(&self) -> &Pool {
        &self.env.pool
    }

    /// Resources that end with the step.
    pub fn step_resources(&self) -> &Resources {
        &self.env.step_resources
    }
}

impl StepEnv {
    /// A step of a single kernel without rendezvous or cancellation, for constant folding and tests.
    pub fn alone(pool: Arc<Pool>) -> Arc<StepEnv> {
        Arc::new(StepEnv {
            step_id: 0,
            pool,
            step_resources: Arc::new(Resources::new("step")),
            rendezvous: Arc::new(SingleKernel),
            cancel: Arc::default(),
            spawn: Arc::new(|work| work()),
            extensions: Extensions::new(),
            stats: None,
            calls: Calls::default(),
        })
    }
}

/// The rendezvous of a step that runs a single kernel: every transfer is an error.
struct SingleKernel;

impl Rendezvous for SingleKernel {
    fn send(&self, key: &str, _: tensor::Tensor, _: bool) -> status::Result<()> {
        Err(status::internal!("{key} cannot be sent: a single kernel has no receiver"))
    }

    fn recv(&self, key: &str, done: Box<dyn FnOnce(status::Result<crate::Received>) + Send>) {
        done(Err(status::internal!("{key} cannot be received: a single kernel has no sender")));
    }

    fn abort(&self, _: status::Error) {}
}

//! What a running kernel can reach.

use crate::{Cancel, Member, Rendezvous, Resources, Stats};
use math::Pool;
use std::sync::Arc;

/// What all kernels of a step share.
pub struct StepEnv {
    /// The step's number, the same on all tasks.
    pub step_id: u64,
    /// Threads over which kernels split their loops.
    pub pool: Arc<Pool>,
    /// Resources that end with the step: TensorArrays, stacks.
    pub step_resources: Resources,
    /// Where tensors change device or task.
    pub rendezvous: Arc<dyn Rendezvous>,
    /// Tells ops that wait when the step is over.
    pub cancel: Arc<Cancel>,
    /// Runs work that a kernel wants done on another thread: function bodies, continuations.
    pub spawn: Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>,
    /// The session the step belongs to, if this task tells those apart that take part in synchronous training.
    pub member: Option<Arc<Member>>,
    /// Where to note when nodes ran, those of functions too, if the step is traced.
    pub stats: Option<Arc<Stats>>,
}

/// What one run of a kernel can reach.
#[derive(Clone, Copy)]
pub struct Ctx<'a> {
    /// The step.
    pub env: &'a Arc<StepEnv>,
    /// The frame the node runs in, as it stands in keys.
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
    /// A step of one kernel: nobody to meet, nothing to wait for. For folding constants and for tests.
    pub fn alone(pool: Arc<Pool>) -> Arc<StepEnv> {
        Arc::new(StepEnv {
            step_id: 0,
            pool,
            step_resources: Resources::new("step"),
            rendezvous: Arc::new(Nobody),
            cancel: Arc::default(),
            spawn: Arc::new(|work| work()),
            member: None,
            stats: None,
        })
    }
}

/// The rendezvous of a step that meets nobody.
struct Nobody;

impl Rendezvous for Nobody {
    fn send(&self, key: &str, _: tensor::Tensor, _: bool) -> status::Result<()> {
        Err(status::internal!("nobody receives {key}"))
    }

    fn recv(&self, key: &str, done: Box<dyn FnOnce(status::Result<crate::Received>) + Send>) {
        done(Err(status::internal!("nobody sends {key}")));
    }

    fn abort(&self, _: status::Error) {}
}

//! Threads beside the training loop: coordinators, repeated work, queue runners.

mod coordinator;
mod looper;
mod queue_runner;
mod shared_stop;

pub use coordinator::{Coordinator, JoinOptions};
pub use looper::Looper;
pub use queue_runner::{QUEUE_RUNNERS, QueueRunner, QueueRunnerDef, queue_runners, start_queue_runners};
pub use shared_stop::SharedStop;

#[cfg(test)]
pub(crate) use looper::Schedule;

//! Hooks that most training programs need.

mod checkpoint_saver;
mod cluster_metrics;
mod feed_fn;
mod final_ops;
mod iterator_saver;
mod logging_tensor;
mod nan_tensor;
mod profiler;
mod step_counter;
mod step_waiter;
mod stop_at_step;
mod summary_saver;
mod synchronous;
mod timer;

pub use checkpoint_saver::{CheckpointSaver, CheckpointSaverListener};
pub use cluster_metrics::ClusterMetrics;
pub use feed_fn::FeedFn;
pub use final_ops::FinalOps;
pub use iterator_saver::IteratorSaver;
pub use logging_tensor::LoggingTensor;
pub use nan_tensor::NanTensor;
pub use profiler::Profiler;
pub use step_counter::StepCounter;
pub use step_waiter::GlobalStepWaiter;
pub use stop_at_step::StopAtStep;
pub use summary_saver::SummarySaver;
pub use synchronous::Synchronous;
pub use timer::{Every, Timer};

use crate::monitored::RunValues;
use crate::{FileWriter, FileWriterOptions, get_global_step};
use checkpoint::step_number;
use graph::{Graph, Output};
use io::FileSystems;
use session::Session;
use status::{Result, failed_precondition};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use tensor::Tensor;

/// The step counter, which the hook requires.
fn step_of(graph: &Graph, hook: &str) -> Result<Output> {
    let step = get_global_step(graph);
    let step = step.ok_or_else(|| failed_precondition!("Global step should be created to use {hook}."))?;
    Ok(step.value().clone())
}

/// The name of the variable that an output is the value of, else of the node itself.
pub(crate) fn step_name(value: &Output) -> String {
    let name = value.node().name();
    let variable = name.strip_suffix("/Read/ReadVariableOp").or_else(|| name.strip_suffix("/read"));
    variable.unwrap_or(&name).to_string()
}

/// The current value of the step counter.
fn read_step(session: &Session, step: &Output) -> Result<i64> {
    step_number(&session.run::<Tensor>(step)?)
}

/// The step counter as the step read it, which is the first value of the hook.
fn stale_step(values: &RunValues) -> Result<i64> {
    step_number(&values.get::<Tensor>(0)?)
}

/// Creates an event file, with a name that differs from those of other files of the same second.
pub(crate) fn event_file(systems: &FileSystems, folder: impl AsRef<Path>) -> Result<Arc<FileWriter>> {
    // Every `RandomState` has random keys, so its hash of nothing serves as a random number.
    let suffix = format!(".{:016x}", RandomState::new().hash_one(()));
    let options = FileWriterOptions { suffix, ..FileWriterOptions::default() };
    Ok(Arc::new(FileWriter::create(systems, folder, options)?))
}

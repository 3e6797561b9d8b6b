//! Drives training: monitored sessions with hooks, supervisors, coordinators and queue runners, synchronous replicas,
//! device setters and event files.
//!
//! The crate decides when steps run, when checkpoints and summaries are written, and how a session is replaced after
//! a task was lost. How variables are updated is up to `optimize`; how they are saved, to `checkpoint`. What both
//! offer to users is exported here again, as in TensorFlow's `tf.train`.
//!
//! A program usually starts with [`MonitoredTrainingSession`].
//!
//! ```
//! use flowgrid_train::hooks::StopAtStep;
//! use flowgrid_train::{GradientDescent, MinimizeOptions, MonitoredTrainingSession, Optimizer, create_global_step};
//! use layers::{TensorOps, Variable};
//!
//! let graph = graph::Graph::with_ops(ops::registry());
//! let w = Variable::zeros(&graph.root(), "w", [2]);
//! let loss = (w.value() - 1.0).square().sum();
//! let step = create_global_step(&graph)?;
//! let options = MinimizeOptions::new().step(&step);
//! let train = Optimizer::new(GradientDescent::new(0.1)).minimize_with(&loss, options)?;
//!
//! let session = MonitoredTrainingSession::new(&graph).hook(StopAtStep::last_step(10)).start()?;
//! let mut steps = 0;
//! session.until_stop(|session| {
//!     steps += 1;
//!     session.run(&train)
//! })?;
//! assert_eq!(steps, 10);
//! # Ok::<(), status::Error>(())
//! ```
#![forbid(unsafe_code)]

mod await_ready;
mod coordination;
pub mod device_setter;
mod file_writer;
pub mod hooks;
pub mod monitored;
pub mod monitoring;
pub mod ready;
mod recovery;
pub mod session_manager;
pub mod supervisor;
mod sync_replicas;

pub use checkpoint::{
    SavedModelBuilder, Saver, SaverBuilder, export_meta_graph, export_meta_graph_with, import_meta_graph,
    import_meta_graph_on, latest_checkpoint, latest_checkpoint_on, meta_graph, saved_model, saver,
};
pub use coordination::*;
pub use device_setter::replica_device_setter;
pub use file_writer::{FileWriter, FileWriterOptions};
pub use monitored::{MonitoredSession, MonitoredTrainingSession, Scaffold, SessionRunHook};
pub use monitoring::{ClusterMetrics, ServerMetrics};
pub use optimize::*;
pub use ready::{local_variables_initializer, report_uninitialized_variables};
pub use session_manager::SessionManager;
pub use supervisor::Supervisor;
pub use sync_replicas::{GradientOutcome, SyncReplicas, SyncReplicasOptimizer};

/// The file systems among the extensions of a session, otherwise the local ones.
fn file_systems(config: &session::SessionConfig) -> io::FileSystems {
    config.extensions.get::<io::FileSystems>().map_or_else(io::FileSystems::local, Clone::clone)
}

#[cfg(test)]
mod tests;

//! I drive steps: optimizers, saver, coordinator, queue runners, supervisor, hooks, device setter.
#![forbid(unsafe_code)]

pub mod clip;
mod coordination;
pub mod device_setter;
mod file_writer;
mod global_step;
mod gradients;
mod graph_text;
pub mod hooks;
mod lost;
pub mod meta_graph;
pub mod metrics;
pub mod monitored;
mod moving_average;
pub mod optimizer;
pub mod ready;
pub mod saved_model;
pub mod saver;
pub mod schedule;
pub mod session_manager;
pub mod supervisor;
mod sync_replicas;
mod told;

pub use coordination::*;
pub use device_setter::replica_device_setter;
pub use file_writer::{FileWriter, FileWriterOptions};
pub use global_step::{create_global_step, create_global_step_in, get_global_step, get_or_create_global_step};
pub use gradients::{gradients, gradients_with};
pub use meta_graph::{export_meta_graph, import_meta_graph, import_meta_graph_on};
pub use metrics::{ClusterMetrics, ServerMetrics};
pub use monitored::{MonitoredSession, MonitoredTrainingSession, Scaffold, SessionRunHook};
pub use moving_average::ExponentialMovingAverage;
pub use op::{Gradient, Slices};
pub use optimizer::Optimizer;
pub use ready::{local_variables_initializer, report_uninitialized_variables};
pub use saver::{Saver, latest_checkpoint, latest_checkpoint_on};
pub use session_manager::SessionManager;
pub use supervisor::Supervisor;
pub use sync_replicas::{Arrived, SyncReplicas, SyncReplicasOptimizer};

/// The file systems a session was given; else the local ones.
fn file_systems(config: &session::SessionConfig) -> io::FileSystems {
    config.given.get::<io::FileSystems>().map_or_else(io::FileSystems::local, |systems| (*systems).clone())
}

#[cfg(test)]
mod tests;

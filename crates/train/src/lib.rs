//! I drive steps: optimizers, saver, coordinator, queue runners, supervisor, hooks, device setter.
#![forbid(unsafe_code)]

pub mod clip;
pub mod device_setter;
mod file_writer;
mod global_step;
mod gradients;
pub mod meta_graph;
pub mod monitored;
mod moving_average;
pub mod optimizer;
pub mod saved_model;
pub mod saver;
pub mod schedule;

pub use device_setter::replica_device_setter;
pub use file_writer::{FileWriter, FileWriterOptions};
pub use global_step::{create_global_step, create_global_step_in, get_global_step};
pub use gradients::{gradients, gradients_with};
pub use meta_graph::{export_meta_graph, import_meta_graph};
pub use monitored::SessionRunHook;
pub use moving_average::ExponentialMovingAverage;
pub use op::{Gradient, Slices};
pub use optimizer::Optimizer;
pub use saver::{Saver, latest_checkpoint};

#[cfg(test)]
mod tests;

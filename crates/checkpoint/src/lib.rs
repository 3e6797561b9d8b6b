//! Checkpoints, meta graphs and saved models: what a model needs to outlive its process.
//!
//! A [`Saver`] adds the nodes that write and read variables, and keeps track of the files. A meta graph is a graph with
//! its collections in one file; a saved model adds named signatures and the values of variables.
//!
//! The crate runs its nodes in a session that the caller passes in. It does not decide when to save: the hooks of
//! `train` do.
//!
//! ```
//! use flowgrid_checkpoint::Saver;
//! use layers::{ScopeOps, Variable, collection::global_variables_initializer};
//! use session::Session;
//!
//! # let folder = std::env::temp_dir().join(format!("flowgrid-doc-checkpoint-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! let graph = graph::Graph::with_ops(ops::registry());
//! let w = Variable::zeros(&graph.root(), "w", [2]);
//! let (saver, session) = (Saver::new(&graph)?, Session::local(&graph));
//! session.execute(&global_variables_initializer(&graph))?;
//! let checkpoint = saver.save(&session, folder.join("model"), 1)?;
//! session.execute(&w.assign(&graph.root().constant([1f32, 2.0])))?;
//! saver.restore(&session, &checkpoint)?;
//! assert_eq!(session.run::<[f32; 2]>(&w)?, [0.0, 0.0]);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), status::Error>(())
//! ```
#![forbid(unsafe_code)]

mod graph_text;
pub mod meta_graph;
mod queue_runner_record;
pub mod saved_model;
pub mod saver;
mod step_number;

pub use graph_text::{with_shapes, write_graph_text};
pub use meta_graph::{export_meta_graph, export_meta_graph_with, import_meta_graph, import_meta_graph_on};
pub use queue_runner_record::{QueueRunnerDef, queue_runner_from_record, queue_runner_to_record};
pub use saved_model::SavedModelBuilder;
pub use saver::{SaveOptions, Saver, SaverBuilder, latest_checkpoint, latest_checkpoint_on};
pub use step_number::step_number;

#[cfg(test)]
mod tests;

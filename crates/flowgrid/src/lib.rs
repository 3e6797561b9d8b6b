//! I re-export, and hold the examples.
//!
//! Flowgrid builds TensorFlow 1.x graphs in Rust and runs them: in this process, on a `flowgrid server`, or on a
//! real TensorFlow server.
//!
//! ```
//! use flowgrid::prelude::*;
//!
//! let graph = Graph::new();
//! let scope = graph.root();
//! let x = scope.placeholder(DType::F32, &[-1, 2]);
//! let w = Variable::build(&scope, "w").initializer(Initializer::Value([[1.0f32], [2.0]].into())).make();
//! let b = Variable::zeros(&scope, "b", [1]);
//! let y = x.matmul(&w) + &b;
//!
//! let session = Session::local(&graph);
//! session.execute(&global_variables_initializer(&graph))?;
//! let rows: Vec<[f32; 1]> = session.run_with(&y, feeds! { &x => [[3.0f32, 4.0], [5.0, 6.0]] })?;
//! assert_eq!(rows, [[11.0], [17.0]]);
//! # Ok::<(), flowgrid::Error>(())
//! ```
//!
//! Gradients are nodes too, so they can be differentiated again:
//!
//! ```
//! use flowgrid::prelude::*;
//!
//! let graph = Graph::new();
//! let x = graph.root().placeholder(DType::F32, &[]);
//! let cube = &x * &x * &x;
//! let slope = dense(&gradients(&[&cube], &[&x])?[0].clone().expect("the cube depends on x"));
//! let bend = dense(&gradients(&[&slope], &[&x])?[0].clone().expect("the slope depends on x"));
//! let values: [f32; 3] = Session::local(&graph).run_with([&cube, &slope, &bend], feeds! { &x => 2.0f32 })?;
//! assert_eq!(values, [8.0, 12.0, 12.0]);
//! # Ok::<(), flowgrid::Error>(())
//! ```
//!
//! Training that is watched stops by itself, saves as it goes on, and goes on where it ended:
//!
//! ```
//! use flowgrid::prelude::*;
//!
//! # let folder = std::env::temp_dir().join(format!("flowgrid-doc-{}", std::process::id()));
//! # let folder = folder.to_string_lossy();
//! let graph = Graph::new();
//! let w = Variable::zeros(&graph.root(), "w", [2]);
//! let loss = (w.value() - 1.0).square().sum();
//! let step = create_global_step(&graph)?;
//! let train = Optimizer::new(GradientDescent::new(0.1)).minimize_with(&loss, &[], Some(&step))?;
//!
//! let session = MonitoredTrainingSession::new(&graph)
//!     .checkpoint_dir(&folder)
//!     .hook(hooks::StopAtStep::last_step(50))
//!     .start()?;
//! session.until_stop(|session| session.run(&train))?;
//! assert!(latest_checkpoint(&folder)?.is_some_and(|path| path.ends_with("model.ckpt-50")));
//! # std::fs::remove_dir_all(&*folder).ok();
//! # Ok::<(), flowgrid::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod defaults;
mod graphs;
mod sessions;

pub use checkpoint;
pub use layers;
pub use ops;
pub use ops::raw as raw_ops;
pub use optimize;
pub use session::{chrome_trace, cluster_from_text, feeds, tf_config};
pub use status::{Code, Error, Result};
pub use store;
pub use tensor::{DType, PartialShape, Shape, Tensor};
pub use train::{self, ExponentialMovingAverage, FileWriter, Gradient, Optimizer, Slices, gradients, gradients_with};

pub use graphs::*;
pub use sessions::*;

/// Reading and writing graphs as TensorFlow does.
pub mod wire {
    pub use graph::wire::{read_graph, write_graph};
}

/// Creates graphs that know all ops.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// assert!(graph.is_empty() && graph.check().is_ok());
/// ```
pub trait NewGraph {
    /// An empty graph.
    fn new() -> Self;
}

impl NewGraph for Graph {
    fn new() -> Graph {
        Graph::with_ops(ops::registry())
    }
}

/// What most programs need: `use flowgrid::prelude::*;`.
pub mod prelude {
    pub use crate::NewGraph;
    pub use graph::{Graph, Node, Output, Scope};
    pub use layers::collection::{global_variables, global_variables_initializer, trainable_variables};
    pub use layers::layer::{BatchNorm, Conv2d, Dense, Phase, dropout, flatten, max_pool2d};
    pub use layers::{Formula, Formulas, Initializer, Kind, Reuse, Variable, VariableScope, loss, summary};
    pub use optimize::clip::{clip_by_global_norm, clip_by_norm, clip_by_value, dense};
    pub use optimize::{
        AdaMax, Adadelta, Adagrad, AdagradDa, Adam, AddSign, Ftrl, GradientDescent, Momentum, PowerSign,
        ProximalAdagrad, ProximalGradientDescent, RmsProp,
    };
    pub use session::{Feeds, LocalCluster, RunOptions, Server, ServerOptions, Session, SessionConfig, feeds};
    pub use status::{Error, Result};
    pub use tensor::{DType, PartialShape, Shape, Tensor};
    pub use train::device_setter::replica_device_setter;
    pub use train::hooks::{self, Every};
    pub use train::{
        ExponentialMovingAverage, FileWriter, Gradient, MonitoredSession, MonitoredTrainingSession, Optimizer, Saver,
        Scaffold, SessionRunHook, create_global_step, gradients, latest_checkpoint, schedule,
    };
}

/// Runs the program in the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;

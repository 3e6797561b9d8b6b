//! Flowgrid builds TensorFlow 1.x graphs in Rust and runs them: in this process, on a `flowgrid server`, or on a real
//! TensorFlow server.
//!
//! This crate exports what programs need from the other crates, and holds the examples. Most programs begin with
//! `use flowgrid::prelude::*;`.
//!
//! ```
//! use flowgrid::prelude::*;
//!
//! let graph = Graph::new();
//! let scope = graph.root();
//! let x = scope.placeholder(DType::F32, &[-1, 2]);
//! let w = Variable::builder(&scope, "w").initializer(Initializer::Value([[1.0f32], [2.0]].into())).build();
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
//! let slope = gradient(&cube, &x)?;
//! let bend = gradient(&slope, &x)?;
//! let values: [f32; 3] = Session::local(&graph).run_with([&cube, &slope, &bend], feeds! { &x => 2.0f32 })?;
//! assert_eq!(values, [8.0, 12.0, 12.0]);
//! # Ok::<(), flowgrid::Error>(())
//! ```
//!
//! A model is a sequence of layers, and an optimizer trains it:
//!
//! ```
//! use flowgrid::prelude::*;
//!
//! let graph = Graph::new();
//! let x = graph.root().constant([[0.0f32, 1.0], [1.0, 0.0]]);
//! let labels = graph.root().constant([0i32, 1]);
//! let model = Sequential::new().add(Dense::new(8).activation(TensorOps::tanh)).add(Dense::new(2));
//! let loss = loss::sparse_softmax_cross_entropy(&labels, &model.apply(&VariableScope::new(&graph.root()), &x));
//! let train = Optimizer::new(Adam::new(0.1)).minimize(&loss)?;
//!
//! let session = Session::local(&graph);
//! session.execute(&global_variables_initializer(&graph))?;
//! for _ in 0..50 {
//!     session.execute(&train)?;
//! }
//! assert!(session.run::<f32>(&loss)? < 0.1);
//! # Ok::<(), flowgrid::Error>(())
//! ```
//!
//! A monitored session stops by itself, saves checkpoints, and continues from the newest one when it is started again:
//!
//! ```
//! use flowgrid::prelude::*;
//!
//! # let folder = std::env::temp_dir().join(format!("flowgrid-doc-{}", std::process::id()));
//! let graph = Graph::new();
//! let w = Variable::zeros(&graph.root(), "w", [2]);
//! let loss = (w.value() - 1.0).square().sum();
//! let step = create_global_step(&graph)?;
//! let options = MinimizeOptions::new().step(&step);
//! let train = Optimizer::new(GradientDescent::new(0.1)).minimize_with(&loss, options)?;
//!
//! let session = MonitoredTrainingSession::new(&graph)
//!     .checkpoint_dir(&folder)
//!     .hook(hooks::StopAtStep::last_step(50))
//!     .start()?;
//! session.until_stop(|session| session.run(&train))?;
//! assert!(latest_checkpoint(&folder)?.is_some_and(|path| path.ends_with("model.ckpt-50")));
//! # std::fs::remove_dir_all(&folder).ok();
//! # Ok::<(), flowgrid::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod defaults;
mod graphs;
mod sessions;
mod training;

pub use checkpoint;
pub use input::{
    self, CsvOptions, Dataset, DatasetIterator, ElementValues, Elements, Feature, Features, PaddedBatchOptions,
    Structure, parse_example,
};
pub use io::example::{Example, SequenceExample, Values};
pub use io::{Compression, RecordReader, RecordWriter};
pub use layers::{self, loss, summary};
pub use ops;
pub use optimize;
pub use session::{chrome_trace, cluster_from_text, feeds, tf_config};
pub use status::{Code, Error, Result};
pub use store;
pub use tensor::{DType, PartialShape, Shape, Tensor};
pub use train::{self, gradient, gradients, gradients_with, latest_checkpoint, latest_checkpoint_on};

/// One builder for each op, as in TensorFlow's `tf.raw_ops`.
pub mod raw_ops {
    pub use data::raw::*;
    pub use ops::raw::*;
}

pub use graphs::*;
pub use sessions::*;
pub use training::*;

/// Reading and writing graphs as TensorFlow does.
pub mod wire {
    pub use graph::wire::{read_graph, write_graph};
}

/// `Graph::new()`: graphs that know all ops of this version.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// assert!(graph.is_empty() && graph.check().is_ok());
/// ```
pub trait AllOps {
    /// An empty graph that knows all ops.
    fn new() -> Self;
}

impl AllOps for Graph {
    fn new() -> Graph {
        Graph::with_ops(data::registry())
    }
}

/// The names that most programs need: `use flowgrid::prelude::*;`.
pub mod prelude {
    pub use crate::AllOps;
    pub use graph::{Graph, Node, Output, Scope};
    pub use input::{Dataset, DatasetIterator, Feature, parse_example};
    pub use layers::collection::{global_variables, global_variables_initializer, trainable_variables};
    pub use layers::{
        AvgPool2d, BatchNorm, Conv2d, Dense, Dropout, Layer, MaxPool2d, Phase, Sequential, avg_pool2d, dropout,
        flatten, max_pool2d,
    };
    pub use layers::{Initializer, Kind, Reuse, ScopeOps, TensorOps, Variable, VariableScope, loss, summary};
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
        ExponentialMovingAverage, FileWriter, Gradient, MinimizeOptions, MonitoredSession, MonitoredTrainingSession,
        Optimizer, Saver, Scaffold, SessionRunHook, create_global_step, create_global_step_in, gradient, gradients,
        latest_checkpoint, schedule,
    };
}

/// Runs the program in the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;

//! Optimizers and what belongs to them: gradients, clipping, learning-rate schedules, moving averages, step counters.
//!
//! The crate adds nodes to graphs. It knows no session: the caller runs the nodes.
//!
//! An [`Optimizer`] combines an [`UpdateRule`] such as [`Adam`] with the slot variables that the rule needs:
//! `Optimizer::new(Adam::new(0.001)).minimize(&loss)` gives the node that runs one training step. [`gradient()`] and
//! [`gradients`] give derivatives as nodes.
//!
//! ```
//! use flowgrid_optimize::{GradientDescent, Optimizer};
//! use layers::{TensorOps, Variable, collection::global_variables_initializer};
//! use session::Session;
//!
//! let graph = graph::Graph::with_ops(ops::registry());
//! let w = Variable::zeros(&graph.root(), "w", [2]);
//! let loss = (w.value() - 1.0).square().sum();
//! let train = Optimizer::new(GradientDescent::new(0.5)).minimize(&loss)?;
//!
//! let session = Session::local(&graph);
//! session.execute(&global_variables_initializer(&graph))?;
//! session.execute(&train)?;
//! assert_eq!(session.run::<[f32; 2]>(&w)?, [1.0, 1.0]);
//! # Ok::<(), status::Error>(())
//! ```
#![forbid(unsafe_code)]

mod adadelta;
mod adagrad;
mod adam;
mod by_name;
pub mod clip;
mod ftrl;
mod global_step;
mod gradient_descent;
mod gradients;
mod minimize_options;
mod moving_average;
mod optimizer;
mod rms_prop;
pub mod schedule;
mod sign;
mod update_rule;

pub use adadelta::Adadelta;
pub use adagrad::{Adagrad, AdagradDa, ProximalAdagrad};
pub use adam::{AdaMax, Adam};
pub use ftrl::Ftrl;
pub use global_step::{create_global_step, create_global_step_in, get_global_step, get_or_create_global_step};
pub use gradient_descent::{GradientDescent, Momentum, ProximalGradientDescent};
pub use gradients::{GradientTarget, gradient, gradients, gradients_with};
pub use minimize_options::MinimizeOptions;
pub use moving_average::ExponentialMovingAverage;
pub use op::{Gradient, Slices};
pub use optimizer::Optimizer;
pub use rms_prop::RmsProp;
pub use sign::{AddSign, PowerSign};
pub use update_rule::{Rate, UpdateContext, UpdateRule};

#[cfg(test)]
mod tests;

//! Defines the ops of TensorFlow but those of input pipelines, which are in `data`: their rows in the op table, builder
//! functions, gradient rules and kernels.
//!
//! A family of ops is a module, and exports a builder function for each op that programs use often. [`raw`] has a builder for
//! every op.
//!
//! ```
//! use flowgrid_ops::array::{constant, split};
//! use tensor::Tensor;
//!
//! let graph = graph::Graph::with_ops(flowgrid_ops::registry());
//! let numbers = constant(&graph.root(), Tensor::vector(&[1f32, 2.0, 3.0, 4.0]));
//! let halves = split(&numbers, 0, 2);
//! assert_eq!(halves[1].name(), "split:1");
//! ```
#![forbid(unsafe_code)]

#[macro_use]
mod dispatch;
mod activation;
mod fusible;
#[macro_use]
pub mod math_ops;
#[macro_use]
pub mod array;
pub mod checkpoint;
pub mod control;
#[macro_use]
pub mod data_structures;
pub(crate) mod hashing;
pub mod image;
pub mod linalg;
pub mod nn;
pub mod parsing;
pub mod quantized;
pub mod random;
pub mod raw;
pub mod signal;
pub mod sparse;
pub mod state;
pub mod string;
pub mod summary;
pub mod training;

use op::{Op, Registry};
use std::sync::{Arc, OnceLock};

/// The op table with all rows of this crate.
pub fn registry() -> Arc<Registry> {
    static REGISTRY: OnceLock<Arc<Registry>> = OnceLock::new();
    REGISTRY.get_or_init(|| Arc::new(registry_with(&[]))).clone()
}

/// The op table with all rows of this crate and those of other tables, which must be of other ops.
pub fn registry_with(others: &[&[Op]]) -> Registry {
    let own = families().map(|(_, tables)| tables).concat();
    Registry::new(&[&own, others].concat()).expect("no op has two rows").with_join(fusible::join)
}

/// The families of ops with their tables, by the name of the module.
pub fn families() -> [(&'static str, &'static [&'static [Op]]); 17] {
    [
        ("array", array::TABLES),
        ("checkpoint", checkpoint::TABLES),
        ("control", control::TABLES),
        ("data_structures", data_structures::TABLES),
        ("image", image::TABLES),
        ("linalg", linalg::TABLES),
        ("math_ops", math_ops::TABLES),
        ("nn", nn::TABLES),
        ("parsing", parsing::TABLES),
        ("quantized", quantized::TABLES),
        ("random", random::TABLES),
        ("signal", signal::TABLES),
        ("sparse", sparse::TABLES),
        ("state", state::TABLES),
        ("string", string::TABLES),
        ("summary", summary::TABLES),
        ("training", training::TABLES),
    ]
}

#[cfg(test)]
mod tests;

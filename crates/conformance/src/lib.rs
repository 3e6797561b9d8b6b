//! Integration tests: cases as text, whose expected results are written by real TensorFlow.
//!
//! The crate runs each case on every runtime (kernel, local session, our server, TensorFlow's server); `README.md` describes
//! the format. It contains no expectations of its own.
#![forbid(unsafe_code)]

mod attrs;
mod builders;
mod case;
mod compare;
#[cfg(doctest)]
mod docs;
mod expected;
mod generate;
mod graph_case;
mod graph_nodes;
mod kernel;
mod kernel_types;
mod ops_page;
mod program;
mod runner;
mod shapes;
mod text;
mod values;

pub use builders::raw_builders;
pub use case::{Case, Input, Kind, Want, parse};
pub use compare::{compare, tolerance};
pub use expected::{Elements, Expected};
pub use graph_case::{GraphCase, parse_graphs};
pub use kernel::KernelAlone;
pub use ops_page::ops_page;
pub use program::{Feed, Program, Step};
pub use runner::{Answer, Files, Runner, caught, compare_answer, run_all};
pub use shapes::check_shapes;

#[cfg(test)]
mod tests;

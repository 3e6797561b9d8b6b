//! I am the integration tests: cases as text, whose expected part real TensorFlow wrote.
#![forbid(unsafe_code)]

mod attrs;
mod case;
mod compare;
mod expected;
mod generate;
mod graph_case;
mod graph_nodes;
mod kernel;
mod program;
mod runner;
mod shapes;
mod text;
mod values;

pub use case::{Case, Input, Kind, Want, parse};
pub use compare::{compare, tolerance};
pub use expected::{Elements, Expected};
pub use graph_case::{GraphCase, parse_graphs};
pub use kernel::KernelAlone;
pub use program::{Feed, Program, Step};
pub use runner::{Answer, Files, Runner, caught, compare_answer, run_all};
pub use shapes::check_shapes;

#[cfg(test)]
mod tests;

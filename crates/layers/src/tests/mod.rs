//! Variables, layers and losses, in graphs that run in a session of this process.

mod creators;
mod layers;
mod losses;
mod partitioners;
mod variables;

use crate::Variable;
use graph::Graph;

/// An empty graph of all ops.
fn graph() -> Graph {
    Graph::with_ops(ops::registry())
}

fn names(variables: &[Variable]) -> Vec<String> {
    variables.iter().map(Variable::name).collect()
}

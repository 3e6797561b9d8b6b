//! Variables, layers and losses, in graphs that run in a session of this process.

mod partitioners;
mod variables;

use graph::Graph;

/// An empty graph of all ops.
fn graph() -> Graph {
    Graph::with_ops(ops::registry())
}

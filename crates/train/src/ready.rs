//! Which variables have no value yet, as a node tells, and how those of a process get theirs.

use graph::{Graph, Node, Output};
use layers::Variable;
use layers::collection::{self, LOCAL_VARIABLES, global_variables, variables};

/// The names of the variables of a graph, global and local, that have no value: an empty vector when all have one.
pub fn report_uninitialized_variables(graph: &Graph) -> Output {
    let mut all = global_variables(graph);
    all.extend(variables(graph, LOCAL_VARIABLES));
    report_uninitialized(graph, &all)
}

/// The names of those of these variables that have no value.
pub fn report_uninitialized(graph: &Graph, variables: &[Variable]) -> Output {
    collection::report_uninitialized(&graph.root().on("/cpu:0"), variables)
}

/// A node that gives every local variable its initial value.
pub fn local_variables_initializer(graph: &Graph) -> Node {
    collection::initializer(graph, "init", &variables(graph, LOCAL_VARIABLES))
}

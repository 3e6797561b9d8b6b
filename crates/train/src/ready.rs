//! Nodes that list uninitialized variables, and that initialize local ones.

use graph::{Graph, Node, Output};
use layers::Variable;
use layers::collection::{self, LOCAL_VARIABLES, global_variables, variables};

/// The names of the uninitialized global and local variables of a graph; an empty vector if all have values.
pub fn report_uninitialized_variables(graph: &Graph) -> Output {
    let mut all = global_variables(graph);
    all.extend(variables(graph, LOCAL_VARIABLES));
    report_uninitialized(graph, &all)
}

/// The names of those of these variables that are uninitialized.
pub fn report_uninitialized(graph: &Graph, variables: &[Variable]) -> Output {
    collection::report_uninitialized(&graph.root().on("/cpu:0"), variables)
}

/// A node that initializes all local variables.
pub fn local_variables_initializer(graph: &Graph) -> Node {
    collection::initializer(graph, "init", &variables(graph, LOCAL_VARIABLES))
}

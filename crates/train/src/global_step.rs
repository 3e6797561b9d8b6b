//! The step counter of a graph.

use graph::Graph;
use layers::Variable;
use layers::collection::{GLOBAL_STEP, GLOBAL_VARIABLES, variables};
use status::{Result, already_exists};
use tensor::DType;

/// Makes the step counter, which begins at zero; an error if there is one.
pub fn create_global_step(graph: &Graph) -> Result<Variable> {
    if get_global_step(graph).is_some() {
        return Err(already_exists!("\"global_step\" already exists."));
    }
    let builder = Variable::build(&graph.root(), "global_step").dtype(DType::I64).trainable(false);
    Ok(builder.collections(&[GLOBAL_VARIABLES, GLOBAL_STEP]).make())
}

/// The step counter, if there is one.
pub fn get_global_step(graph: &Graph) -> Option<Variable> {
    variables(graph, GLOBAL_STEP).into_iter().next()
}

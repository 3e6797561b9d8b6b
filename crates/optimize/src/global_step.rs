//! The step counter of a graph, TensorFlow's `global_step`.

use graph::{Graph, Scope};
use layers::Variable;
use layers::collection::{GLOBAL_STEP, GLOBAL_VARIABLES, variables};
use status::{Result, already_exists};
use tensor::DType;

/// Creates the step counter, which starts at zero. It is an error if there is one.
pub fn create_global_step(graph: &Graph) -> Result<Variable> {
    create_global_step_in(&graph.root())
}

/// As [`create_global_step`], on the device of `scope`.
pub fn create_global_step_in(scope: &Scope) -> Result<Variable> {
    if get_global_step(scope.graph()).is_some() {
        return Err(already_exists!("\"global_step\" already exists."));
    }
    let builder = Variable::builder(&scope.reenter(""), "global_step").dtype(DType::I64).trainable(false);
    Ok(builder.collections(&[GLOBAL_VARIABLES, GLOBAL_STEP]).build())
}

/// The step counter; a new one if there is none.
pub fn get_or_create_global_step(graph: &Graph) -> Result<Variable> {
    get_global_step(graph).map_or_else(|| create_global_step(graph), Ok)
}

/// The step counter, if there is one.
pub fn get_global_step(graph: &Graph) -> Option<Variable> {
    variables(graph, GLOBAL_STEP).into_iter().next()
}

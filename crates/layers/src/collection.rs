//! Collections of a graph: their names, as in TensorFlow, and what they contain.

use crate::Variable;
use crate::{ScopeOps, TensorOps};
use graph::{AttrValue, Graph, Node, Output, Scope, TensorName};
use ops::raw;
use status::Result;

/// All variables.
pub const GLOBAL_VARIABLES: &str = "variables";
/// Variables that optimizers update.
pub const TRAINABLE_VARIABLES: &str = "trainable_variables";
/// Variables of a single process.
pub const LOCAL_VARIABLES: &str = "local_variables";
/// Variables of the model, without those of optimizers.
pub const MODEL_VARIABLES: &str = "model_variables";
/// Variables of metrics.
pub const METRIC_VARIABLES: &str = "metric_variables";
/// Variables that are saved besides the global ones.
pub const SAVEABLE_OBJECTS: &str = "saveable_objects";
/// Variables that have a moving average.
pub const MOVING_AVERAGE_VARIABLES: &str = "moving_average_variables";
/// Nodes that a training step must run besides those of the optimizer.
pub const UPDATE_OPS: &str = "update_ops";
/// Losses that are summed to the total loss.
pub const LOSSES: &str = "losses";
/// Regularization losses.
pub const REGULARIZATION_LOSSES: &str = "regularization_losses";
/// Summaries that are merged and written together.
pub const SUMMARIES: &str = "summaries";
/// The step counter.
pub const GLOBAL_STEP: &str = "global_step";
/// Nodes that run a training step; `Optimizer::apply_gradients` adds them.
pub const TRAIN_OP: &str = "train_op";
/// Queue runners, which start with a session.
pub const QUEUE_RUNNERS: &str = "queue_runners";
/// Savers, which are part of a meta graph.
pub const SAVERS: &str = "savers";
/// The node that initializes the variables.
pub const INIT_OP: &str = "init_op";
/// The node that initializes the variables and tables of one process.
pub const LOCAL_INIT_OP: &str = "local_init_op";
/// The names of uninitialized variables.
pub const READY_OP: &str = "ready_op";
/// The names of uninitialized global variables.
pub const READY_FOR_LOCAL_INIT_OP: &str = "ready_for_local_init_op";
/// All summaries, merged.
pub const SUMMARY_OP: &str = "summary_op";
/// Outputs of layers.
pub const ACTIVATIONS: &str = "activations";
/// Weights of layers.
pub const WEIGHTS: &str = "weights";
/// Biases of layers.
pub const BIASES: &str = "biases";
/// Paths of the files that a saved model needs.
pub const ASSET_FILEPATHS: &str = "asset_filepaths";
/// The step counter of an evaluation.
pub const EVAL_STEP: &str = "eval_step";
/// Nodes that initialize what a saved model added.
pub const SAVED_MODEL_INITIALIZERS: &str = "saved_model_initializers";
pub use ops::data_structures::lookup::TABLE_INITIALIZERS;

/// All variables of a graph, in the order in which they were created.
pub fn global_variables(graph: &Graph) -> Vec<Variable> {
    variables(graph, GLOBAL_VARIABLES)
}

/// The variables of a graph that optimizers update.
pub fn trainable_variables(graph: &Graph) -> Vec<Variable> {
    variables(graph, TRAINABLE_VARIABLES)
}

/// The variables in a collection.
pub fn variables(graph: &Graph, collection: &str) -> Vec<Variable> {
    graph.collection(collection).iter().filter_map(|record| Variable::from_record(graph, record)).collect()
}

/// Adds a variable to a collection.
pub fn add_variable(collection: &str, variable: &Variable) {
    variable.graph().add_to_collection(collection, variable.to_record());
}

/// A node that initializes all global variables.
pub fn global_variables_initializer(graph: &Graph) -> Node {
    initializer(graph, "init", &global_variables(graph))
}

/// A node that initializes these variables.
pub fn initializer(graph: &Graph, name: &str, variables: &[Variable]) -> Node {
    let initializers: Vec<Node> = variables.iter().map(|variable| variable.initializer().clone()).collect();
    ops::control::group_in(&graph.root().named(name), &initializers)
}

/// The names of those of these variables that are uninitialized when the node runs.
pub fn report_uninitialized(scope: &Scope, variables: &[Variable]) -> Output {
    let scope = scope.named("report_uninitialized_variables");
    let names: Vec<String> = variables.iter().map(Variable::name).collect();
    if names.is_empty() {
        return scope.constant(names);
    }
    let ready: Vec<Output> = variables.iter().map(|variable| variable.is_initialized().seen_from(&scope)).collect();
    let ready = raw::pack(&scope, &ready).named("stack").output();
    let missing = raw::logical_not(&ready).output();
    let places = raw::where_(&missing).output().reshape(&[-1]);
    scope.constant(names).gather(&places)
}

/// The nodes in a collection, which lists names of nodes or of outputs.
pub fn nodes(graph: &Graph, collection: &str) -> Vec<Node> {
    let name = |value: &AttrValue| match value {
        AttrValue::String(name) => Some(String::from_utf8_lossy(name).into_owned()),
        _ => None,
    };
    let root = graph.root();
    graph.collection(collection).iter().filter_map(name).filter_map(|name| find(&root, &name)).collect()
}

fn find(root: &Scope, name: &str) -> Option<Node> {
    Node::find(root, TensorName::parse(name).node)
}

/// The sum of the losses of a graph, with regularization losses.
pub fn total_loss(graph: &Graph) -> Result<graph::Output> {
    let losses: Vec<_> =
        [LOSSES, REGULARIZATION_LOSSES].iter().flat_map(|name| nodes(graph, name)).map(|node| node.output(0)).collect();
    if losses.is_empty() {
        return Err(status::invalid!("The graph has no losses to add up"));
    }
    Ok(raw::add_n(&graph.root(), &losses).named("total_loss").output())
}

//! Which variables have no value yet, as a node tells.

use graph::{Graph, Output};
use layers::collection::{LOCAL_VARIABLES, global_variables, variables};
use layers::{Formulas, Kind, Variable};
use tensor::{DType, Tensor};

/// The names of the variables of a graph, global and local, that have no value: an empty vector when all have one.
pub fn report_uninitialized_variables(graph: &Graph) -> Output {
    let mut all = global_variables(graph);
    all.extend(variables(graph, LOCAL_VARIABLES));
    report_uninitialized(graph, &all)
}

/// The names of those of these variables that have no value.
pub fn report_uninitialized(graph: &Graph, variables: &[Variable]) -> Output {
    let scope = graph.root().named("report_uninitialized_variables");
    let host = scope.on("/cpu:0");
    if variables.is_empty() {
        return match Tensor::zeros_of(DType::STRING, [0]) {
            Ok(none) => host.constant(none),
            Err(error) => {
                graph.fail(error);
                host.constant("")
            }
        };
    }
    let has_value = |variable: &Variable| {
        let scope = scope.beside(variable.handle().node());
        let op = match variable.kind() {
            Kind::Resource => scope.op("VarIsInitializedOp"),
            Kind::Reference => scope.op("IsVariableInitialized"),
        };
        op.input(variable.handle()).output()
    };
    let have: Vec<Output> = variables.iter().map(has_value).collect();
    let have = host.op("Pack").named("stack").inputs(&have).output();
    let missing = host.op("LogicalNot").input(&have).output();
    let names = host.constant(variables.iter().map(Variable::name).collect::<Vec<String>>());
    let mask = scope.named("boolean_mask").on("/cpu:0");
    let places = mask.op("Where").input(&missing).output();
    let places = mask.op("Squeeze").input(&places).attr("squeeze_dims", vec![1i64]).output();
    let axis = mask.op("Const").named("GatherV2/axis").attr("dtype", DType::I32).attr("value", Tensor::scalar(0i32));
    mask.op("GatherV2").input(&names).input(&places).input(&axis.output()).output()
}

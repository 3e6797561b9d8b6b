//! What the tests of `checkpoint` and `train` share.

#[path = "../../../io/src/tests/folder.rs"]
mod folder;

pub use self::folder::Folder;
use graph::{Graph, Node, Output};
use layers::{ScopeOps, TensorOps};
use optimize::create_global_step;
use tensor::DType;

/// An empty graph of all ops.
pub fn graph() -> Graph {
    Graph::with_ops(ops::registry())
}

/// A graph, the node of its step, which adds one to the step counter, and the square of the counter before that.
pub fn counting() -> (Graph, Node, Output) {
    let graph = graph();
    let step = create_global_step(&graph).unwrap();
    let square = graph.root().op("Square").named("loss").input(&step.value().cast(DType::F32)).output();
    let next = step.assign_add(&graph.root().after([square.node()]).constant(1i64));
    (graph, next, square)
}

/// The nodes whose names begin with `prefix`, a line for each: op, name, inputs in order, device.
pub fn nodes(graph: &Graph, prefix: &str) -> Vec<String> {
    let or_none = |text: &str| if text.is_empty() { "-".to_string() } else { text.to_string() };
    let line = |node: &graph::NodeDef| {
        let mut inputs = node.inputs.clone();
        inputs.sort();
        format!("{} {} {} {}", node.op, node.name, or_none(&inputs.join(",")), or_none(&node.device))
    };
    let def = graph.to_def().unwrap();
    def.nodes.iter().filter(|node| node.name.starts_with(prefix)).map(|node| line(node)).collect()
}

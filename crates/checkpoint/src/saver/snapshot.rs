//! The moment from which on a checkpoint does not see what steps do.

use graph::{Graph, Node, Output, TensorName};
use io::saved_model::Saver as SaverDef;
use layers::Formulas;
use std::collections::BTreeMap;

/// Ops whose value is what it is when somebody looks, not when they run.
const BY_REFERENCE: [&str; 2] = ["Variable", "VariableV2"];

/// The inputs of SaveV2 before the values.
const BEFORE_VALUES: usize = 3;

/// Adds a tensor that is there when all values that the nodes of a saver write were read. None if there is no such
/// moment, because variables by reference are read as they are written, or if nodes cannot be added any more.
pub(super) fn build(graph: &Graph, def: &SaverDef) -> Option<Output> {
    if graph.is_finalized() {
        return None;
    }
    let saved = output(graph, &def.save_tensor)?;
    let mut by_device: BTreeMap<String, Vec<Node>> = BTreeMap::new();
    for writer in saved.node().with_ancestors().iter().filter(|node| node.op() == "SaveV2") {
        for input in writer.def().inputs.iter().skip(BEFORE_VALUES).filter(|input| !input.starts_with('^')) {
            let read = output(graph, input)?.node().clone();
            if BY_REFERENCE.contains(&read.op().as_str()) {
                return None;
            }
            by_device.entry(read.device()).or_default().push(read);
        }
    }
    let scope = graph.root().named("snapshot");
    // One node for each device: one message for each task, not one for each variable.
    let reads = by_device.into_iter().map(|(device, reads)| scope.on(&device).after(&reads).op("NoOp").node());
    let reads: Vec<Node> = reads.collect();
    Some(scope.after(&reads).constant(true))
}

/// A tensor of a graph by its name.
pub(super) fn output(graph: &Graph, name: &str) -> Option<Output> {
    let parsed = TensorName::parse(name);
    Some(Node::find(&graph.root(), parsed.node)?.output(parsed.index.unwrap_or(0) as usize))
}

//! The moment from which on training steps do not change what a checkpoint contains.

use graph::{Graph, Node, Output, StateRole, TensorName, VariableKind};
use io::saved_model::Saver as SaverDef;
use layers::ScopeOps;
use ops::raw;
use std::collections::BTreeMap;

/// The number of inputs of a node that saves, before the values.
const BEFORE_VALUES: usize = 3;

/// Adds a tensor that is available once all values of a saver were read. None if there is no such moment, because
/// reference variables are read while they are written to the file, or if the graph is finalized.
pub(super) fn build(graph: &Graph, def: &SaverDef) -> Option<Output> {
    if graph.is_finalized() {
        return None;
    }
    let saved = output(graph, &def.save_tensor)?;
    let mut by_device: BTreeMap<String, Vec<Node>> = BTreeMap::new();
    let saves = |node: &&Node| graph.ops().op_facts(&node.op()).state_role == Some(StateRole::Saves);
    for writer in saved.node().with_ancestors().iter().filter(saves) {
        for input in writer.def().inputs.iter().skip(BEFORE_VALUES).filter(|input| !input.starts_with('^')) {
            let read = output(graph, input)?.node().clone();
            // The value of a reference is read by its reader, not when the variable's own node runs.
            if graph.ops().op_facts(&read.op()).variable == Some(VariableKind::Reference) {
                return None;
            }
            by_device.entry(read.device()).or_default().push(read);
        }
    }
    let scope = graph.root().named("snapshot");
    // One node for each device: one message for each task, not one for each variable.
    let reads = by_device.into_iter().map(|(device, reads)| raw::no_op(&scope.on(&device).after(&reads)).node());
    let reads: Vec<Node> = reads.collect();
    Some(scope.after(&reads).constant(true))
}

/// A tensor of a graph by its name.
pub(super) fn output(graph: &Graph, name: &str) -> Option<Output> {
    let parsed = TensorName::parse(name);
    Some(Node::find(&graph.root(), parsed.node)?.output(parsed.index.unwrap_or(0) as usize))
}

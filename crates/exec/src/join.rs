//! Joins nodes that one kernel can compute together: a product, its bias and its activation.

use crate::Kernels;
use graph::{FlatGraph, FlatNode, NodeId, OpFacts};
use std::sync::Arc;

/// Joins the pairs of nodes for which the registry has a combined node, if no other node uses the result of the first.
pub(crate) fn join(graph: &mut FlatGraph, kernels: &Kernels) {
    let mut readers = vec![0u32; graph.nodes.len()];
    let mut waited_for = vec![false; graph.nodes.len()];
    for node in &graph.nodes {
        node.inputs.iter().for_each(|edge| readers[edge.node as usize] += 1);
        node.controls.iter().for_each(|&control| waited_for[control as usize] = true);
    }
    let mut keep = vec![true; graph.nodes.len()];
    for id in crate::simplify::order(graph) {
        let second = graph.node(id);
        let Some(source) = second.inputs.first().map(|edge| edge.node) else { continue };
        let first = graph.node(source);
        if readers[source as usize] != 1 || waited_for[source as usize] || first.def.device != second.def.device {
            continue;
        }
        if let Some(def) = kernels.registry().joined(&first.def, &second.def)
            && ![first, second].iter().any(|node| kernels.is_of_device_type(&node.def))
        {
            let node = FlatNode { def: Arc::new(def), ..with_inputs_of_both(first, second) };
            graph.nodes[id as usize] = node;
            keep[source as usize] = false;
        }
    }
    if keep.contains(&false) {
        graph.retain(&keep);
    }
}

/// The second node with the inputs of both.
fn with_inputs_of_both(first: &FlatNode, second: &FlatNode) -> FlatNode {
    let others = (&second.inputs[1..], &second.input_types[1..]);
    let controls = first.controls.iter().chain(&second.controls);
    let mut controls: smallvec::SmallVec<[NodeId; 2]> = controls.copied().collect();
    controls.sort_unstable();
    controls.dedup();
    FlatNode {
        def: second.def.clone(),
        inputs: first.inputs.iter().chain(others.0).copied().collect(),
        controls,
        input_types: first.input_types.iter().chain(others.1).copied().collect(),
        output_types: second.output_types.clone(),
        facts: OpFacts::PLAIN,
    }
}

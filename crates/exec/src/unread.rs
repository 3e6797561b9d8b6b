//! Values that nobody reads: who waits for such a node waits for its inputs instead, and the work is spared.
//!
//! Python groups the gradients of a product before it hands one of them on, so the gradient of a batch of images is
//! waited for though nobody trains the images: a fifth of all products of a small network.

use crate::Kernels;
use crate::simplify::{is_flow, order};
use graph::{AttrValue, FlatGraph, FlatNode, NodeDef, Signatures};
use std::sync::Arc;
use tensor::DType;

/// Turns nodes that others only wait for into `NoOp`s, as TensorFlow does. Nodes that were asked for stay, which are
/// those nobody waits for either; so do those in and after loops.
pub(crate) fn spare(graph: &mut FlatGraph, kernels: &Kernels) {
    let mut readers = vec![0u32; graph.nodes.len()];
    let mut waited_for = vec![false; graph.nodes.len()];
    for node in &graph.nodes {
        node.inputs.iter().for_each(|edge| readers[edge.node as usize] += 1);
        node.controls.iter().for_each(|&control| waited_for[control as usize] = true);
    }
    if !waited_for.contains(&true) || kernels.registry().signature("NoOp").is_none() {
        return;
    }
    for id in order(graph).into_iter().rev() {
        let id = id as usize;
        if readers[id] > 0 || !waited_for[id] || !can_be_spared(graph, &graph.nodes[id], kernels) {
            continue;
        }
        let node = &mut graph.nodes[id];
        for edge in std::mem::take(&mut node.inputs) {
            readers[edge.node as usize] -= 1;
            waited_for[edge.node as usize] = true;
            node.controls.push(edge.node);
        }
        node.controls.sort_unstable();
        node.controls.dedup();
        node.input_types.clear();
        node.output_types.clear();
        let (name, device) = (node.def.name.clone(), node.def.device.clone());
        node.def = Arc::new(NodeDef { name, op: "NoOp".to_string(), device, ..NodeDef::default() });
    }
}

/// Whether a node does nothing but turn its inputs into values, and is not there to complain about them.
fn can_be_spared(graph: &FlatGraph, node: &FlatNode, kernels: &Kernels) -> bool {
    let op = node.def.op.as_str();
    let Some(signature) = kernels.registry().signature(op) else { return false };
    let acts = signature.stateful
        || node.output_types.is_empty()
        || node.input_types.iter().any(|&dtype| dtype.is_ref() || matches!(dtype, DType::RESOURCE | DType::VARIANT))
        || node.output_types.iter().any(|dtype| dtype.is_ref())
        || node.def.attrs.values().any(|value| matches!(value, AttrValue::Func(_)))
        || ["_", "TensorArray", "Inplace", "Debug", "Placeholder"].iter().any(|prefix| op.starts_with(prefix))
        || matches!(op, "Assert" | "CheckNumerics");
    // The outputs of a Switch live or die one by one, the Switch itself lives: waiting for it is something else.
    let after_flow = node.inputs.iter().any(|edge| is_flow(&graph.node(edge.node).def.op));
    !acts && !is_flow(op) && !after_flow
}

//! Removes computations whose values no node reads. Nodes that wait for such a node wait for its inputs instead.
//!
//! Python's gradients of a product are grouped: one becomes available only when both are computed. So the gradient with
//! respect to a batch of images is computed although no node reads it, a fifth of all products of a small network.

use crate::Kernels;
use crate::simplify::order;
use graph::builtin_ops::NO_OP;
use graph::{AttrValue, FlatGraph, FlatNode, NodeDef, OpFacts, Signatures};
use std::sync::Arc;
use tensor::DType;

/// Replaces nodes that have control edges to others, but no readers, by `NoOp`s, as TensorFlow does. Nodes without any
/// consumer stay, because the step requested them; so do nodes in loops and behind them.
pub(crate) fn remove_unread(graph: &mut FlatGraph, kernels: &Kernels) {
    let mut readers = vec![0u32; graph.nodes.len()];
    let mut waited_for = vec![false; graph.nodes.len()];
    for node in &graph.nodes {
        node.inputs.iter().for_each(|edge| readers[edge.node as usize] += 1);
        node.controls.iter().for_each(|&control| waited_for[control as usize] = true);
    }
    if !waited_for.contains(&true) || kernels.registry().signature(NO_OP).is_none() {
        return;
    }
    for id in order(graph).into_iter().rev() {
        let id = id as usize;
        if readers[id] > 0 || !waited_for[id] || !can_be_skipped(graph, &graph.nodes[id], kernels) {
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
        node.def = Arc::new(NodeDef { name, op: NO_OP.to_string(), device, ..NodeDef::default() });
        node.facts = OpFacts::PLAIN;
    }
}

/// True if a node does nothing but compute values.
fn can_be_skipped(graph: &FlatGraph, node: &FlatNode, kernels: &Kernels) -> bool {
    let Some(signature) = kernels.registry().signature(&node.def.op) else { return false };
    let acts = signature.stateful
        || node.output_types.is_empty()
        || node.input_types.iter().any(|&dtype| dtype.is_ref() || matches!(dtype, DType::RESOURCE | DType::VARIANT))
        || node.output_types.iter().any(|dtype| dtype.is_ref())
        || node.def.attrs.values().any(|value| matches!(value, AttrValue::Func(_)))
        || node.facts.runs_unread
        || node.facts.depends_on_step();
    // A reader of one output of a Switch runs only if that output is alive, but a Switch itself always runs. So a
    // control edge from the reader cannot be replaced by one from the Switch.
    let after_switch = node.inputs.iter().any(|edge| graph.node(edge.node).facts.depends_on_step());
    !acts && !after_switch
}

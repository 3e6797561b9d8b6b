//! Removes a Recv whose only reader can read its tensor in chunks: the reader receives it itself, so that this task
//! never holds the whole tensor.

use crate::program::StreamedInput;
use graph::{FlatGraph, NodeId};
use op::{Flow, Kernel, Run};
use std::sync::Arc;

/// Removes these Recvs. `kernels` are those of the nodes, in order. Returns the inputs that each remaining node receives
/// itself.
pub(crate) fn stream_inputs(graph: &mut FlatGraph, kernels: &mut Vec<Arc<Kernel>>) -> Vec<Vec<StreamedInput>> {
    let mut streamed: Vec<Vec<StreamedInput>> = graph.nodes.iter().map(|_| Vec::new()).collect();
    if kernels.iter().all(|kernel| kernel.streams_from.is_none()) {
        return streamed;
    }
    let has_one_reader = read_once(graph);
    let mut keep = vec![true; graph.nodes.len()];
    for id in 0..graph.nodes.len() {
        let Some(first) = kernels[id].streams_from else { continue };
        for index in (first..graph.nodes[id].inputs.len()).rev() {
            let source = graph.nodes[id].inputs[index].node as usize;
            let Run::Flow(Flow::Recv(transfer)) = &kernels[source].run else { continue };
            if has_one_reader[source] {
                let def = graph.nodes[source].def.clone();
                let (name, op) = (def.name.as_str().into(), def.op.as_str().into());
                streamed[id].push(StreamedInput { index, transfer: transfer.clone(), name, op });
                keep[source] = false;
                move_controls(graph, source, id, index);
            }
        }
        streamed[id].reverse();
    }
    graph.retain(&keep);
    let mut kept = keep.iter();
    kernels.retain(|_| kept.next() == Some(&true));
    let mut kept = keep.iter();
    streamed.retain(|_| kept.next() == Some(&true));
    streamed
}

/// Whether a node has exactly one reader, and no node waits for it through a control edge.
fn read_once(graph: &FlatGraph) -> Vec<bool> {
    let mut readers = vec![0u32; graph.nodes.len()];
    for node in &graph.nodes {
        node.inputs.iter().for_each(|edge| readers[edge.node as usize] += 1);
        node.controls.iter().for_each(|&control| readers[control as usize] += 2);
    }
    readers.into_iter().map(|count| count == 1).collect()
}

/// Removes the input from the reader, which then waits for what its Recv waited for.
fn move_controls(graph: &mut FlatGraph, source: usize, reader: usize, index: usize) {
    let waits = std::mem::take(&mut graph.nodes[source].controls);
    let node = &mut graph.nodes[reader];
    node.inputs.remove(index);
    node.input_types.remove(index);
    node.controls.extend(waits.into_iter().filter(|&wait: &NodeId| wait as usize != reader));
    node.controls.sort_unstable();
    node.controls.dedup();
}

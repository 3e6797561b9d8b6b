//! Removes a Recv if its only reader can read the value in pieces: the reader receives the value itself, so that the
//! task never holds all of it.

use crate::program::Pull;
use graph::{FlatGraph, NodeId};
use op::{Flow, Kernel, Run};
use std::sync::Arc;

/// Removes such Recvs. `kernels` has the kernel of each node. Returns what each remaining node pulls.
pub(crate) fn pull(graph: &mut FlatGraph, kernels: &mut Vec<Arc<Kernel>>) -> Vec<Vec<Pull>> {
    let mut pulls: Vec<Vec<Pull>> = graph.nodes.iter().map(|_| Vec::new()).collect();
    if kernels.iter().all(|kernel| kernel.pulls.is_none()) {
        return pulls;
    }
    let alone = read_once(graph);
    let mut keep = vec![true; graph.nodes.len()];
    for id in 0..graph.nodes.len() {
        let Some(first) = kernels[id].pulls else { continue };
        for place in (first..graph.nodes[id].inputs.len()).rev() {
            let source = graph.nodes[id].inputs[place].node as usize;
            let Run::Flow(Flow::Recv(transfer)) = &kernels[source].run else { continue };
            if alone[source] {
                let def = graph.nodes[source].def.clone();
                let (name, op) = (def.name.as_str().into(), def.op.as_str().into());
                pulls[id].push(Pull { place, transfer: transfer.clone(), name, op });
                keep[source] = false;
                move_controls(graph, source, id, place);
            }
        }
        pulls[id].reverse();
    }
    graph.retain(&keep);
    let mut kept = keep.iter();
    kernels.retain(|_| kept.next() == Some(&true));
    let mut kept = keep.iter();
    pulls.retain(|_| kept.next() == Some(&true));
    pulls
}

/// For each node, whether it has exactly one reader and no control edges to others.
fn read_once(graph: &FlatGraph) -> Vec<bool> {
    let mut readers = vec![0u32; graph.nodes.len()];
    for node in &graph.nodes {
        node.inputs.iter().for_each(|edge| readers[edge.node as usize] += 1);
        node.controls.iter().for_each(|&control| readers[control as usize] += 2);
    }
    readers.into_iter().map(|count| count == 1).collect()
}

/// Gives the control inputs of a Recv to its reader, and removes the input.
fn move_controls(graph: &mut FlatGraph, source: usize, reader: usize, place: usize) {
    let waits = std::mem::take(&mut graph.nodes[source].controls);
    let node = &mut graph.nodes[reader];
    node.inputs.remove(place);
    node.input_types.remove(place);
    node.controls.extend(waits.into_iter().filter(|&wait: &NodeId| wait as usize != reader));
    node.controls.sort_unstable();
    node.controls.dedup();
}

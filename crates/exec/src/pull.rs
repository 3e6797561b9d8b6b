//! A Recv whose only reader takes its value piece by piece is left to that reader: nobody here holds the whole value.

use crate::program::Pull;
use graph::{FlatGraph, NodeId};
use op::{Flow, Kernel, Run};
use std::sync::Arc;

/// Takes such Recvs out. `kernels` are those of the nodes, in order; gives what each node that is left pulls.
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
                hand_over(graph, source, id, place);
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

/// Which nodes have one reader, and nobody who waits for them.
fn read_once(graph: &FlatGraph) -> Vec<bool> {
    let mut readers = vec![0u32; graph.nodes.len()];
    for node in &graph.nodes {
        node.inputs.iter().for_each(|edge| readers[edge.node as usize] += 1);
        node.controls.iter().for_each(|&control| readers[control as usize] += 2);
    }
    readers.into_iter().map(|count| count == 1).collect()
}

/// The reader waits for what its Recv waited for.
fn hand_over(graph: &mut FlatGraph, source: usize, reader: usize, place: usize) {
    let waits = std::mem::take(&mut graph.nodes[source].controls);
    let node = &mut graph.nodes[reader];
    node.inputs.remove(place);
    node.input_types.remove(place);
    node.controls.extend(waits.into_iter().filter(|&wait: &NodeId| wait as usize != reader));
    node.controls.sort_unstable();
    node.controls.dedup();
}

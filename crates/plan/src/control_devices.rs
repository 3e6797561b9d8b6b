//! Moves control flow ops to the devices of their data, overriding the requested device: fewer tasks take part in a
//! loop, and a conditional read of a remote variable sends nothing if the branch is not taken.

use crate::StepGraph;
use graph::{ControlFlow, NodeId};

/// Moves Switch and Exit to their data input, Enter and NextIteration to their first reader.
pub(crate) fn move_control_flow(step: &mut StepGraph) {
    let first_readers = first_readers(step);
    for id in (0..step.nodes.len()).rev() {
        let node = &step.nodes[id];
        let moves = match node.facts.control_flow {
            // A reference cannot leave the device of its variable.
            Some(ControlFlow::Enter) => !node.output_types[0].is_ref(),
            Some(ControlFlow::NextIteration) => true,
            _ => false,
        };
        if moves && let Some(reader) = first_readers[id] {
            step.nodes[id].device = step.nodes[reader as usize].device;
        }
    }
    for id in 0..step.nodes.len() {
        let node = &step.nodes[id];
        if matches!(node.facts.control_flow, Some(ControlFlow::Switch | ControlFlow::Exit))
            && let Some(data) = node.inputs.first()
        {
            step.nodes[id].device = step.nodes[data.node as usize].device;
        }
    }
}

fn first_readers(step: &StepGraph) -> Vec<Option<NodeId>> {
    let mut readers = vec![None; step.nodes.len()];
    for (id, node) in step.nodes.iter().enumerate() {
        for edge in &node.inputs {
            readers[edge.node as usize].get_or_insert(id as NodeId);
        }
    }
    readers
}

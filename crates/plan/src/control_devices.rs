//! Moves control flow ops to the devices of their data, overriding the requested device: fewer tasks take part in a
//! loop, and a conditional read of a remote variable sends nothing if the branch is not taken.

use crate::StepGraph;
use graph::NodeId;

/// Moves Switch and Exit to their data input, Enter and NextIteration to their first reader.
pub(crate) fn move_control_flow(step: &mut StepGraph) {
    let first_readers = first_readers(step);
    for id in (0..step.nodes.len()).rev() {
        let node = &step.nodes[id];
        // A reference cannot leave the device of its variable.
        if matches!(node.def.op.as_str(), "Enter" | "NextIteration" | "RefNextIteration")
            && let Some(reader) = first_readers[id]
        {
            step.nodes[id].device = step.nodes[reader as usize].device;
        }
    }
    for id in 0..step.nodes.len() {
        let node = &step.nodes[id];
        if matches!(node.def.op.as_str(), "Switch" | "RefSwitch" | "_SwitchN" | "Exit" | "RefExit")
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

//! Nodes that exchange values with the client, through the run of the task they are on.

use crate::{Device, StepGraph, StepNode};
use graph::{AttrValue, NodeDef};
use smallvec::SmallVec;
use std::sync::Arc;
use tensor::DType;

/// Lets every fetch leave from where it is made: the answer of that task's run brings it, and no transfer to the master is
/// needed. Gives the names of the fetches and their devices.
pub(crate) fn add_fetches(step: &mut StepGraph, devices: &[Device]) -> Vec<(String, u32)> {
    let mut places = Vec::with_capacity(step.fetches.len());
    for (name, edge) in std::mem::take(&mut step.fetches) {
        let source = &step.nodes[edge.node as usize];
        let (device, dtype) = (source.device, source.output_types[edge.index as usize].base());
        let from = (&*source.def.name, edge.index);
        let def = exchanging("_Send", ("T", dtype), &name, from, &devices[device as usize]);
        let (inputs, controls, output_types) = (smallvec::smallvec![edge], SmallVec::new(), SmallVec::new());
        step.nodes.push(StepNode { def, inputs, controls, output_types, device });
        places.push((name, device));
    }
    places
}

/// A node that sends a fetch or receives a feed, of this output of a node.
pub(crate) fn exchanging(
    op: &str,
    dtype: (&str, DType),
    tensor: &str,
    (source, index): (&str, u32),
    device: &Device,
) -> Arc<NodeDef> {
    let name = device.spec.to_string();
    let attrs: [(&str, AttrValue); 6] = [
        (dtype.0, dtype.1.into()),
        ("tensor_name", tensor.into()),
        ("send_device", name.as_str().into()),
        ("send_device_incarnation", (device.incarnation as i64).into()),
        ("recv_device", name.as_str().into()),
        ("client_terminated", true.into()),
    ];
    Arc::new(NodeDef {
        name: format!("{}_{source}_{index}", op.to_lowercase()),
        op: op.to_string(),
        device: name,
        attrs: attrs.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
        ..NodeDef::default()
    })
}

/// The key of a value that such a node exchanges.
pub(crate) fn key(device: &Device, tensor: &str) -> String {
    format!("{0};{1:016x};{0};{tensor};0:0", device.spec, device.incarnation)
}

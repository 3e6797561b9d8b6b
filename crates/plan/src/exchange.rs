//! Nodes that pass feeds and fetches between the client and the task that uses or computes them.

use crate::{Device, StepGraph, StepNode};
use graph::builtin_ops::SEND;
use graph::{AttrValue, NodeDef, OpFacts, RendezvousKeyPrefix};
use smallvec::SmallVec;
use std::sync::Arc;
use tensor::DType;

/// A feed or a fetch of a run.
pub(crate) struct Exchange {
    /// The client's name for it.
    pub name: String,
    /// The index of the device it enters or leaves.
    pub device: u32,
    /// Its rendezvous key.
    pub key: String,
}

/// Sends every fetch from the task that computes it: it is part of that task's RunGraph response, so no transfer to
/// the master is needed.
pub(crate) fn add_fetches(step: &mut StepGraph, devices: &[Device]) -> Vec<Exchange> {
    let mut fetches = Vec::with_capacity(step.fetches.len());
    for (name, edge) in std::mem::take(&mut step.fetches) {
        let source = &step.nodes[edge.node as usize];
        let dtype = source.output_types[edge.index as usize].base();
        let device = host_of(source.device, devices);
        // A TensorFlow task keeps the node for other steps of the session, in which the client may write `x` for
        // `x:0`.
        let tensor = format!("{}:{}", source.def.name, edge.index);
        let from = (&*source.def.name, edge.index);
        let def = exchanging(SEND, ("T", dtype), &tensor, from, &devices[device as usize]);
        let (inputs, controls, output_types) = (smallvec::smallvec![edge], SmallVec::new(), SmallVec::new());
        step.nodes.push(StepNode { def, inputs, controls, output_types, facts: OpFacts::PLAIN, device });
        fetches.push(Exchange { name, device, key: key(&devices[device as usize], &tensor) });
    }
    fetches
}

/// The feeds of a step, whose nodes exist already.
pub(crate) fn feeds(step: &StepGraph, devices: &[Device]) -> Vec<Exchange> {
    let feed = |(name, device): &(String, u32)| Exchange {
        name: name.clone(),
        device: *device,
        key: key(&devices[*device as usize], name),
    };
    step.feeds.iter().map(feed).collect()
}

/// A CPU device of the same task: values on a GPU are copied to the host before the task can send them.
fn host_of(device: u32, devices: &[Device]) -> u32 {
    let is_cpu = |device: &Device| device.spec.kind.as_deref() == Some("CPU");
    let own = &devices[device as usize];
    let host = |other: &Device| is_cpu(other) && other.spec.task_name() == own.spec.task_name();
    match is_cpu(own) {
        true => device,
        false => devices.iter().position(host).map_or(device, |place| place as u32),
    }
}

/// A node that sends this output as a fetch, or receives it as a feed.
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

/// The rendezvous key of a feed or fetch.
fn key(device: &Device, tensor: &str) -> String {
    let name = device.spec.to_string();
    RendezvousKeyPrefix::new(&name, device.incarnation, &name, tensor).root_key()
}

//! Placement errors: TensorFlow's message, followed by advice.

use super::Device;
use graph::{AttrValue, DeviceSpec, NodeDef};
use status::{Error, invalid};
use std::collections::BTreeSet;
use std::sync::Arc;

/// No device matches. `wanted` is the request of the node's whole colocation group, `ops` are the ops in it.
pub(super) fn no_device(node: &NodeDef, ops: &BTreeSet<&str>, wanted: &DeviceSpec, devices: &[Device]) -> Error {
    let name = &node.name;
    let mut known: Vec<String> = devices.iter().map(|device| device.spec.to_string()).collect();
    known.sort();
    let known = known.join(", ");
    let cure = cure(wanted, devices);
    let asked = &node.device;
    if DeviceSpec::parse(asked).is_ok_and(|own| own == *wanted) {
        if devices.iter().any(|device| device.spec.matches(wanted)) {
            return no_kernel(node, ops, wanted, devices);
        }
        return invalid!(
            "Cannot assign a device for operation {name}: {{{{node {name}}}}} was explicitly assigned to {asked} but \
             available devices are [ {known} ]. Make sure the device specification refers to a valid device.{cure}"
        )
        .at_node(name);
    }
    invalid!(
        "Cannot assign a device for operation {name}: Could not satisfy explicit device specification '{asked}' \
         because the node {{{{colocation_node {name}}}}} was colocated with a group of nodes that required \
         incompatible device '{wanted}'. All available devices [{known}].{cure}"
    )
    .at_node(name)
}

/// The device exists, but its type has no kernel of this op, or of an op of its colocation group.
fn no_kernel(node: &NodeDef, ops: &BTreeSet<&str>, wanted: &DeviceSpec, devices: &[Device]) -> Error {
    let (name, op, asked) = (&node.name, &node.op, &node.device);
    let kind = wanted.kind.as_deref().unwrap_or("any");
    let attrs: Vec<String> = node.attrs.iter().filter_map(type_attr).collect();
    let kernels: String = types_with(op, devices).iter().map(|kind| format!("  device='{kind}'\n")).collect();
    let group = match ops.len() {
        0 | 1 => String::new(),
        _ => {
            let line = |op: &&str| format!("\n{op}: {}", types_with(op, devices).join(" "));
            let lines: String = ops.iter().map(line).collect();
            format!("\nColocation group had the following types and supported devices:{lines}")
        }
    };
    invalid!(
        "Cannot assign a device for operation {name}: Could not satisfy explicit device specification '{asked}' \
         because no supported kernel for {kind} devices is available.{OTHER_DEVICE}{group}\nOp: {op}\n\
         Node attrs: {}\nRegistered kernels:\n{kernels}",
        attrs.join(", ")
    )
    .at_node(name)
}

/// The types of the session's devices that support an op.
fn types_with<'a>(op: &str, devices: &'a [Device]) -> Vec<&'a str> {
    let with = devices.iter().filter(|device| device.supports(op));
    let types: BTreeSet<&str> = with.filter_map(|device| device.spec.kind.as_deref()).collect();
    types.into_iter().collect()
}

/// A type attribute as TensorFlow writes it; a kernel may depend on it.
fn type_attr((name, value): (&String, &AttrValue)) -> Option<String> {
    match value {
        AttrValue::Type(dtype) => Some(format!("{name}={}", dtype.proto_name())),
        _ => None,
    }
}

const OTHER_DEVICE: &str = " With allow_soft_placement it runs on another device of its task.";

/// Advice for a device that does not exist.
fn cure(wanted: &DeviceSpec, devices: &[Device]) -> String {
    let jobs: BTreeSet<&str> = devices.iter().filter_map(|device| device.spec.job.as_deref()).collect();
    let has_job = wanted.job.as_deref().is_none_or(|job| jobs.contains(job));
    let task = DeviceSpec { kind: None, id: None, ..wanted.clone() };
    if jobs.iter().all(|job| *job == "localhost") && !(has_job && task.task.is_none_or(|task| task == 0)) {
        return " This session runs in its own process and knows no other task: start a server for each task of the \
                cluster, and give the session the target of one, such as \"grpc://localhost:2222\"."
            .to_string();
    }
    if !has_job {
        let jobs = jobs.into_iter().collect::<Vec<_>>().join(", ");
        return format!(" The session's cluster has the jobs {jobs}; device filters may hide others.");
    }
    if !devices.iter().any(|device| device.spec.matches(&task)) {
        return " The session's cluster has no such task; device filters may hide it.".to_string();
    }
    match wanted.kind.as_deref() {
        Some("GPU") => " The requested device appears to be a GPU, but CUDA is not enabled. With allow_soft_placement \
                        it runs on the CPU."
            .to_string(),
        _ => OTHER_DEVICE.to_string(),
    }
}

/// A node is to be colocated with nodes that request another device.
pub(super) fn cannot_colocate(node: &str, other: &str, reason: &str) -> Error {
    invalid!("Cannot colocate nodes {{{{colocation_node {node}}}}} and {{{{colocation_node {other}}}}}: {reason}")
        .at_node(node)
}

type Ends<'a> = (&'a Arc<NodeDef>, &'a Arc<NodeDef>);

/// The variable or resource of one op is on two devices.
pub(super) fn incompatible_resources((source, reader): Ends<'_>, one: &DeviceSpec, other: &DeviceSpec) -> Error {
    invalid!(
        "Cannot place the graph because a reference or resource edge connects colocation groups with incompatible \
         resource devices: {one} vs {other}. The edge src node is name='{}' (op='{}'), and the dst node is name='{}' \
         (op='{}').",
        source.name,
        source.op,
        reader.name,
        reader.op
    )
    .at_node(&reader.name)
}

/// The ends of an edge that carries a reference or a resource.
pub(super) fn connected((source, reader): Ends<'_>, reason: &str) -> Error {
    let (one, other) = (&source.name, &reader.name);
    invalid!(
        "Nodes were connected by a reference or resource connection (requiring them to be on the same device), but the \
         two nodes were assigned two different devices: Cannot colocate nodes {{{{colocation_node {one}}}}} and \
         {{{{colocation_node {other}}}}}: {reason}"
    )
    .at_node(other)
}

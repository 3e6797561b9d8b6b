//! Colocation groups: sets of nodes that share a device, with their combined request.

use super::types::{ALL, Types};
use super::{Device, errors, is_handle};
use graph::{AttrValue, DeviceSpec, FlatGraph, FlatNode, Forwards, FunctionCall, NodeId};
use rustc_hash::FxHashMap;
use status::{Result, invalid};

/// The groups of a graph as a union-find forest: a member stores its parent, a root the request of the group.
pub(super) struct Groups {
    parents: Vec<NodeId>,
    requests: Vec<Request>,
    soft: bool,
}

#[derive(Clone)]
struct Request {
    /// The combined request of all members.
    requested: DeviceSpec,
    /// The request of the op that creates a variable or another resource; it cannot be overridden.
    resource: DeviceSpec,
    /// The device types that support all members.
    types: u64,
    pinned: Option<u32>,
}

impl Groups {
    pub fn new(graph: &FlatGraph, devices: &[Device], types: &Types, old: &[u32], soft: bool) -> Result<Groups> {
        let mut requests = Vec::with_capacity(graph.nodes.len());
        for (id, node) in graph.nodes.iter().enumerate() {
            requests.push(match old.get(id) {
                Some(&device) => Request { requested: devices[device as usize].spec.clone(), ..Request::any(ALL) },
                None => request_of(node, types.supporting(&node.def.op))?,
            });
        }
        let mut groups = Groups { parents: (0..graph.nodes.len() as NodeId).collect(), requests, soft };
        groups.join_handles(graph)?;
        groups.join_classes(graph)?;
        Ok(groups)
    }

    pub fn root(&mut self, mut id: NodeId) -> NodeId {
        while self.parents[id as usize] != id {
            let grandparent = self.parents[self.parents[id as usize] as usize];
            self.parents[id as usize] = grandparent;
            id = grandparent;
        }
        id
    }

    /// The request of the group with this root.
    pub fn requested(&self, root: NodeId) -> &DeviceSpec {
        &self.requests[root as usize].requested
    }

    /// The device types that support all members of the group with this root.
    pub fn types(&self, root: NodeId) -> u64 {
        self.requests[root as usize].types
    }

    pub fn pin(&mut self, root: NodeId, device: u32) {
        self.requests[root as usize].pinned.get_or_insert(device);
    }

    pub fn pinned(&self, root: NodeId) -> Option<u32> {
        self.requests[root as usize].pinned
    }

    /// Colocates consumers of a reference, a resource or an object that cannot leave its device with its producer.
    fn join_handles(&mut self, graph: &FlatGraph) -> Result<()> {
        for (id, node) in graph.nodes.iter().enumerate() {
            if is_exempt(graph, node) {
                continue;
            }
            for (edge, &dtype) in node.inputs.iter().zip(&node.input_types) {
                if is_handle(dtype) || graph.node(edge.node).facts.outputs_stay {
                    self.join_edge(graph, edge.node, id as NodeId)?;
                }
            }
        }
        Ok(())
    }

    /// On such an edge the request of the producer takes precedence.
    fn join_edge(&mut self, graph: &FlatGraph, source: NodeId, reader: NodeId) -> Result<()> {
        let (from, to) = (self.root(source), self.root(reader));
        let (producer, consumer) = (self.requests[from as usize].clone(), &mut self.requests[to as usize]);
        let defs = || (&graph.node(source).def, &graph.node(reader).def);
        if !producer.resource.matches(&consumer.resource) {
            return Err(errors::incompatible_resources(defs(), &producer.resource, &consumer.resource));
        }
        if !producer.requested.matches(&consumer.requested) {
            consumer.requested = consumer.resource.clone().or(&producer.requested);
        }
        self.join(from, to).map_err(|reason| errors::connected(defs(), &reason))
    }

    /// `loc:@x` puts a node into the group of node x, even if no such node exists.
    fn join_classes(&mut self, graph: &FlatGraph) -> Result<()> {
        let mut first: FxHashMap<String, NodeId> = FxHashMap::default();
        for (id, node) in graph.nodes.iter().enumerate() {
            for class in classes(node) {
                self.join_class(graph, &mut first, id as NodeId, class)?;
            }
            self.join_class(graph, &mut first, id as NodeId, node.def.name.clone())?;
        }
        Ok(())
    }

    fn join_class(
        &mut self,
        graph: &FlatGraph,
        first: &mut FxHashMap<String, NodeId>,
        id: NodeId,
        class: String,
    ) -> Result<()> {
        let other = *first.entry(class).or_insert(id);
        let (from, to) = (self.root(id), self.root(other));
        match self.join(from, to) {
            Err(reason) if !self.soft => {
                let (node, other) = (&graph.node(id).def.name, &graph.node(other).def.name);
                Err(errors::cannot_colocate(node, other, &reason))
            }
            _ => Ok(()), // soft placement: the node leaves its group and keeps its own request
        }
    }

    /// Merges two groups; otherwise returns why they cannot be merged.
    fn join(&mut self, a: NodeId, b: NodeId) -> std::result::Result<(), String> {
        if a == b {
            return Ok(());
        }
        let (one, other) = (&self.requests[a as usize], &self.requests[b as usize]);
        let resource = merged(&one.resource, &other.resource, false)?;
        let requested = merged(&one.requested, &other.requested, self.soft)?;
        let requested = resource.clone().or(&requested);
        let types = one.types & other.types;
        self.parents[a.max(b) as usize] = a.min(b);
        self.requests[a.min(b) as usize] = Request { requested, resource, types, pinned: None };
        Ok(())
    }
}

impl Request {
    /// Any device of these types.
    fn any(types: u64) -> Request {
        Request { requested: DeviceSpec::default(), resource: DeviceSpec::default(), types, pinned: None }
    }
}

fn request_of(node: &FlatNode, types: u64) -> Result<Request> {
    if node.def.device.is_empty() {
        return Ok(Request::any(types));
    }
    let requested = DeviceSpec::read(&node.def.device).map_err(|cure| {
        let (device, name) = (&node.def.device, &node.def.name);
        invalid!("Malformed device specification '{device}' in node: {{{{node {name}}}}}: {cure}").at_node(name)
    })?;
    let makes_handle = node.inputs.is_empty() && node.output_types.len() == 1 && is_handle(node.output_types[0]);
    let resource = if makes_handle { requested.clone() } else { DeviceSpec::default() };
    Ok(Request { requested, resource, types, pinned: None })
}

/// Combines two requests. With soft placement a device type or id on which they disagree is dropped.
fn merged(a: &DeviceSpec, b: &DeviceSpec, soft: bool) -> std::result::Result<DeviceSpec, String> {
    fn differ<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
        a.is_some() && b.is_some() && a != b
    }
    let (kinds, ids) = (differ(&a.kind, &b.kind), differ(&a.id, &b.id));
    let conflict = match () {
        _ if differ(&a.job, &b.job) => "jobs",
        _ if differ(&a.replica, &b.replica) => "replicas",
        _ if differ(&a.task, &b.task) => "tasks",
        _ if kinds && !soft => "types",
        _ if ids && !soft => "ids",
        _ => {
            let mut both = a.clone().or(b);
            if kinds {
                (both.kind, both.id) = (None, None);
            } else if ids {
                both.id = None;
            }
            return Ok(both);
        }
    };
    Err(format!("Cannot merge devices with incompatible {conflict}: '{a}' and '{b}'"))
}

/// Nodes that only pass handles on, which may be used on other devices.
fn is_exempt(graph: &FlatGraph, node: &FlatNode) -> bool {
    node.facts.function_call == Some(FunctionCall::Plain)
        || node.facts.forwards == Forwards::Each
        || graph.library.functions.contains_key(&node.def.op)
}

fn classes(node: &FlatNode) -> Vec<String> {
    let Some(AttrValue::List(list)) = node.def.attrs.get("_class") else { return Vec::new() };
    let names = list.strings.iter().filter_map(|class| class.strip_prefix(b"loc:@"));
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

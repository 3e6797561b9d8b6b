//! Placement: nodes that must share a device are grouped, then each group gets a device.

mod errors;
mod groups;
mod types;

use graph::{DeviceSpec, FlatGraph, FlatNode, Forwards, NodeId};
use groups::Groups;
use op::{DeviceType, DeviceTypes};
use rustc_hash::FxHashMap;
use status::{Error, Result};
use std::rc::Rc;
use std::sync::Arc;
use tensor::DType;
use types::Types;

/// A device of the session.
#[derive(Clone, Debug)]
pub struct Device {
    /// Its full name.
    pub spec: DeviceSpec,
    /// A random number that changes when the task restarts.
    pub incarnation: u64,
    /// Its registered type. CPUs and types that only other tasks know have none: they are taken to support every op.
    device_type: Option<Arc<DeviceType>>,
    /// Devices with a lower rank are preferred.
    rank: (bool, i64),
}

impl Device {
    /// A device, whose type may be one of `types`.
    pub fn new(spec: DeviceSpec, incarnation: u64, types: &DeviceTypes) -> Device {
        let kind = spec.kind.as_deref().unwrap_or_default();
        let preferred = spec.job.as_deref().and_then(|job| types.preferred_by(job));
        let rank = (preferred.is_some_and(|name| name != kind), -i64::from(types.priority_of(kind)));
        Device { device_type: types.find(kind).cloned(), rank, spec, incarnation }
    }

    fn supports(&self, op: &str) -> bool {
        self.device_type.as_ref().is_none_or(|own| own.supports(op))
    }
}

/// The index of each node's device in the list of devices.
pub type Placement = Vec<u32>;

/// Places every node. `devices` begins with those of the master's own task. Nodes that are placed in `old` keep their
/// device.
pub fn place(graph: &FlatGraph, devices: &[Device], old: &[u32], soft: bool) -> Result<Placement> {
    let types = Types::new(devices);
    let groups = Groups::new(graph, devices, &types, old, soft)?;
    let placed = (0..graph.nodes.len()).map(|id| old.get(id).copied()).collect();
    let mut placing = Placing { graph, devices, types, soft, groups, placed, memo: FxHashMap::default() };
    placing.pin_old(old);
    let new = old.len()..graph.nodes.len();
    // Nodes without inputs are placed after their consumers, to be able to follow them.
    let (later, first): (Vec<usize>, Vec<usize>) = new.partition(|&id| is_generator(&graph.nodes[id]));
    let readers = placing.readers();
    for id in first {
        let near = placing.input_to_follow(id, &readers);
        placing.put(id as NodeId, near)?;
    }
    for id in later {
        let near = placing.common_device(&readers[id]);
        placing.put(id as NodeId, near)?;
    }
    Ok(placing.placed.into_iter().map(|device| device.unwrap_or(0)).collect())
}

/// One output, no inputs and no reference: it can be computed on any device.
fn is_generator(node: &FlatNode) -> bool {
    node.inputs.is_empty() && node.output_types.len() == 1 && !node.output_types[0].is_ref()
}

/// References and resources cannot leave their device.
fn is_handle(dtype: DType) -> bool {
    dtype.is_ref() || dtype == DType::RESOURCE
}

struct Placing<'a> {
    graph: &'a FlatGraph,
    devices: &'a [Device],
    types: Types,
    soft: bool,
    groups: Groups,
    placed: Vec<Option<u32>>,
    /// Matching devices by supported types and request, best first.
    memo: FxHashMap<u64, FxHashMap<DeviceSpec, Rc<[u32]>>>,
}

impl Placing<'_> {
    /// Groups with members that are placed already keep that device.
    fn pin_old(&mut self, old: &[u32]) {
        for (id, &device) in old.iter().enumerate() {
            let root = self.groups.root(id as NodeId);
            self.groups.pin(root, device);
        }
    }

    /// Assigns a device: that of the group, else `near` if it matches, else the best match.
    fn put(&mut self, id: NodeId, near: Option<u32>) -> Result<()> {
        let root = self.groups.root(id);
        let device = match self.groups.pinned(root) {
            Some(device) => device,
            None => {
                let fitting = self.fitting(id, root)?;
                near.filter(|near| fitting.contains(near)).unwrap_or(fitting[0])
            }
        };
        self.groups.pin(root, device);
        self.placed[id as usize] = Some(device);
        Ok(())
    }

    /// The devices a group may use; at least one.
    fn fitting(&mut self, id: NodeId, root: NodeId) -> Result<Rc<[u32]>> {
        let (wanted, types) = (self.groups.requested(root), self.groups.types(root));
        if let Some(known) = self.memo.get(&types).and_then(|memo| memo.get(wanted)) {
            return Ok(known.clone());
        }
        let mut found = self.matching(wanted, types);
        if found.is_empty() && self.soft {
            found = self.matching(&DeviceSpec { kind: None, id: None, ..wanted.clone() }, types);
        }
        if found.is_empty() {
            return Err(self.no_device(id, root));
        }
        let found: Rc<[u32]> = found.into();
        self.memo.entry(types).or_default().insert(wanted.clone(), found.clone());
        Ok(found)
    }

    fn no_device(&mut self, id: NodeId, root: NodeId) -> Error {
        let members = (0..self.graph.nodes.len() as NodeId).filter(|&other| self.groups.root(other) == root);
        let ops = members.map(|member| &*self.graph.node(member).def.op).collect();
        errors::no_device(&self.graph.node(id).def, &ops, self.groups.requested(root), self.devices)
    }

    /// Devices of a group's supported types that match a request, best first: by the priority of their type, then
    /// those of the master's own task, then by name.
    fn matching(&self, wanted: &DeviceSpec, types: u64) -> Vec<u32> {
        let own = self.devices.first().map(|device| device.spec.task_name());
        let rank = |device: &Device| (device.rank, Some(device.spec.task_name()) != own, device.spec.to_string());
        let fits = |device: &Device| device.spec.matches(wanted) && self.types.allows(types, device);
        let numbered = self.devices.iter().enumerate();
        let mut found: Vec<u32> = numbered.filter(|(_, device)| fits(device)).map(|(place, _)| place as u32).collect();
        found.sort_by_cached_key(|&place| rank(&self.devices[place as usize]));
        found
    }

    /// The consumers of each node, by data or control edges.
    fn readers(&self) -> Vec<Vec<NodeId>> {
        let mut readers = vec![Vec::new(); self.graph.nodes.len()];
        for (id, node) in self.graph.nodes.iter().enumerate() {
            for source in node.inputs.iter().map(|edge| edge.node).chain(node.controls.iter().copied()) {
                readers[source as usize].push(id as NodeId);
            }
        }
        readers
    }

    /// The device of the input, for nodes that only inspect it or pass it on.
    fn input_to_follow(&self, id: usize, readers: &[Vec<NodeId>]) -> Option<u32> {
        let node = &self.graph.nodes[id];
        let input = node.inputs.first()?.node;
        let passes_on = || node.facts.forwards == Forwards::First && self.passes_on(node, &readers[id]);
        let follows = node.facts.reads_shape_only || passes_on();
        self.placed[input as usize].filter(|_| follows)
    }

    fn passes_on(&self, node: &FlatNode, readers: &[NodeId]) -> bool {
        let [reader] = readers else { return false };
        let asked = |id: NodeId| &self.graph.node(id).def.device;
        node.def.device.is_empty() && node.controls.is_empty() && asked(node.inputs[0].node) == asked(*reader)
    }

    /// The device of all these nodes, if it is the same.
    fn common_device(&self, readers: &[NodeId]) -> Option<u32> {
        let first = self.placed[*readers.first()? as usize];
        first.filter(|_| readers.iter().all(|&reader| self.placed[reader as usize] == first))
    }
}

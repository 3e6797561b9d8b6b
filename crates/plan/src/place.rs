//! Where nodes run: groups that must stay together, then a device for each group.

use graph::{AttrValue, DeviceSpec, FlatGraph, NodeId};
use rustc_hash::FxHashMap;
use status::{Result, invalid};
use tensor::DType;

/// A device of the session.
#[derive(Clone, Debug)]
pub struct Device {
    /// Its full name.
    pub spec: DeviceSpec,
    /// A random number that changes when its task restarts.
    pub incarnation: u64,
}

/// The device of each node, by place in the list of devices.
pub type Placement = Vec<u32>;

/// Places every node. `devices` begins with those of the master's own task. Nodes that have a place in
/// `old` keep it.
pub fn place(graph: &FlatGraph, devices: &[Device], old: &[u32], soft: bool) -> Result<Placement> {
    let mut groups = Groups::new(graph)?;
    let mut requests: FxHashMap<u32, Request> = FxHashMap::default();
    for id in 0..graph.nodes.len() as NodeId {
        let group = groups.root(id);
        requests.entry(group).or_default().add(graph, id, soft)?;
    }
    let mut chosen: FxHashMap<u32, u32> = FxHashMap::default();
    let mut memo: FxHashMap<DeviceSpec, u32> = FxHashMap::default();
    let mut placement = Placement::with_capacity(graph.nodes.len());
    for id in 0..graph.nodes.len() as NodeId {
        let group = groups.root(id);
        let device = match (old.get(id as usize), chosen.get(&group)) {
            (Some(&old), _) => old,
            (None, Some(&device)) => device,
            (None, None) => choose(graph, id, &requests[&group].spec, devices, soft, &mut memo)?,
        };
        chosen.insert(group, device);
        placement.push(device);
    }
    follow_neighbours(graph, devices, &mut groups, &mut placement, old.len());
    Ok(placement)
}

fn choose(
    graph: &FlatGraph,
    id: NodeId,
    wanted: &DeviceSpec,
    devices: &[Device],
    soft: bool,
    memo: &mut FxHashMap<DeviceSpec, u32>,
) -> Result<u32> {
    if let Some(&device) = memo.get(wanted) {
        return Ok(device);
    }
    let matching = |spec: &DeviceSpec| devices.iter().position(|device| device.spec.matches(spec));
    let found = matching(wanted).or_else(|| {
        let softer = DeviceSpec { kind: None, id: None, ..wanted.clone() };
        soft.then(|| matching(&softer)).flatten()
    });
    match found {
        Some(place) => {
            memo.insert(wanted.clone(), place as u32);
            Ok(place as u32)
        }
        None => Err(no_device(graph, id, wanted, devices)),
    }
}

fn no_device(graph: &FlatGraph, id: NodeId, wanted: &DeviceSpec, devices: &[Device]) -> status::Error {
    let name = &graph.node(id).def.name;
    let mut known: Vec<String> = devices.iter().map(|device| device.spec.to_string()).collect();
    known.sort();
    let jobless = wanted.job.is_some() && devices.iter().all(|device| device.spec.job.as_deref() == Some("localhost"));
    let hint = match jobless {
        true => " The session is a local one: give it the target of a server in that job, such as grpc://host:port.",
        false => "",
    };
    invalid!(
        "Cannot assign a device for operation {name}: {{{{node {name}}}}} was explicitly assigned to {wanted} but \
         available devices are [ {} ]. Make sure the device specification refers to a valid device.{hint}",
        known.join(", ")
    )
    .at_node(name)
}

/// What the members of a group ask for together.
#[derive(Default)]
struct Request {
    spec: DeviceSpec,
    by: String,
}

impl Request {
    fn add(&mut self, graph: &FlatGraph, id: NodeId, soft: bool) -> Result<()> {
        let node = graph.node(id);
        if node.def.device.is_empty() {
            return Ok(());
        }
        let asked = DeviceSpec::parse(&node.def.device).map_err(|error| error.at_node(&node.def.name))?;
        // On an edge that carries a reference the producer's wish is the one that counts.
        let follows = node.inputs.iter().zip(&node.input_types).any(|(_, dtype)| is_handle(*dtype));
        if !self.spec.matches(&asked) {
            let same_task = DeviceSpec { kind: None, id: None, ..self.spec.clone() }.matches(&asked);
            let tolerated = follows || (soft && same_task);
            if !tolerated {
                return Err(self.conflict(&node.def.name, &asked));
            }
        }
        if self.by.is_empty() {
            self.by = node.def.name.clone();
        }
        self.spec = std::mem::take(&mut self.spec).or(&asked);
        Ok(())
    }

    fn conflict(&self, name: &str, asked: &DeviceSpec) -> status::Error {
        invalid!(
            "Cannot colocate nodes {{{{colocation_node {name}}}}} and {{{{colocation_node {}}}}} because no device type \
             supports both of those nodes and the other nodes colocated with them: {} asked for {asked}, {} for {}",
            self.by,
            name,
            self.by,
            self.spec
        )
        .at_node(name)
    }
}

/// References and resources stay where they were made.
fn is_handle(dtype: DType) -> bool {
    dtype.is_ref() || dtype == DType::RESOURCE
}

/// Sets of nodes that share a device.
struct Groups {
    parents: Vec<u32>,
}

impl Groups {
    fn new(graph: &FlatGraph) -> Result<Groups> {
        let mut groups = Groups { parents: (0..graph.nodes.len() as u32).collect() };
        for (id, node) in graph.nodes.iter().enumerate() {
            let is_call = graph.library.functions.contains_key(&node.def.op) || is_functional(&node.def.op);
            for (edge, &dtype) in node.inputs.iter().zip(&node.input_types) {
                if is_handle(dtype) && !is_call {
                    groups.join(edge.node, id as u32);
                }
            }
            let Some(AttrValue::List(classes)) = node.def.attrs.get("_class") else { continue };
            for class in &classes.strings {
                let Some(name) = class.strip_prefix(b"loc:@") else { continue };
                let name = String::from_utf8_lossy(name);
                if let Some(other) = graph.find(&name) {
                    groups.join(other, id as u32);
                }
            }
        }
        Ok(groups)
    }

    fn root(&mut self, mut id: u32) -> u32 {
        while self.parents[id as usize] != id {
            let grandparent = self.parents[self.parents[id as usize] as usize];
            self.parents[id as usize] = grandparent;
            id = grandparent;
        }
        id
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b) as usize] = a.min(b);
    }
}

fn is_functional(op: &str) -> bool {
    matches!(
        op,
        "PartitionedCall"
            | "StatefulPartitionedCall"
            | "If"
            | "StatelessIf"
            | "While"
            | "StatelessWhile"
            | "Case"
            | "StatelessCase"
    )
}

/// Nodes that ask for nothing go where their data is: a constant to its only reader, a shape to its input.
fn follow_neighbours(
    graph: &FlatGraph,
    devices: &[Device],
    groups: &mut Groups,
    placement: &mut Placement,
    old: usize,
) {
    if devices.len() < 2 {
        return;
    }
    let mut readers: Vec<Option<u32>> = vec![None; graph.nodes.len()];
    let mut mixed = vec![false; graph.nodes.len()];
    for (id, node) in graph.nodes.iter().enumerate() {
        for edge in &node.inputs {
            let (source, device) = (edge.node as usize, placement[id]);
            mixed[source] |= readers[source].is_some_and(|known| known != device);
            readers[source] = Some(device);
        }
    }
    let mut members: FxHashMap<u32, usize> = FxHashMap::default();
    for id in 0..graph.nodes.len() as u32 {
        *members.entry(groups.root(id)).or_default() += 1;
    }
    for (id, node) in graph.nodes.iter().enumerate().skip(old) {
        if !node.def.device.is_empty() || members[&groups.root(id as u32)] > 1 {
            continue;
        }
        let generator = node.inputs.is_empty() && node.output_types.len() == 1 && !is_handle(node.output_types[0]);
        let metadata = matches!(node.def.op.as_str(), "Shape" | "Size" | "Rank" | "Identity") && node.inputs.len() == 1;
        if generator && !mixed[id] {
            placement[id] = readers[id].unwrap_or(placement[id]);
        } else if metadata {
            placement[id] = placement[node.inputs[0].node as usize];
        }
    }
}

//! Pruning: the subgraph that a step needs, from its fetches and targets back to its feeds.

use crate::Device;
use crate::exchange::exchanging;
use graph::builtin_ops::RECV;
use graph::{Edge, FlatGraph, NodeDef, NodeId, OpFacts, TensorName};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use status::{Result, invalid, not_found};
use std::sync::Arc;
use tensor::DType;

/// The index of the device that receives feeds.
const MASTER: u32 = 0;

/// Feeds, fetches and targets of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signature {
    /// Tensors whose values come from the client, `x:0`.
    pub feeds: Vec<String>,
    /// Tensors to return to the client, `y:0`.
    pub fetches: Vec<String>,
    /// Nodes to run without returning a value.
    pub targets: Vec<String>,
}

/// The subgraph of a step, with nodes that receive the feeds.
#[derive(Default)]
pub struct StepGraph {
    /// Its nodes.
    pub nodes: Vec<StepNode>,
    /// The feeds, and the devices that receive them.
    pub feeds: Vec<(String, u32)>,
    /// The fetches, and the outputs they name.
    pub fetches: Vec<(String, Edge)>,
}

/// A node of a step, on its device.
pub struct StepNode {
    /// From the session's graph, or created for a feed or a fetch.
    pub def: Arc<NodeDef>,
    /// Data inputs.
    pub inputs: SmallVec<[Edge; 3]>,
    /// Control inputs.
    pub controls: SmallVec<[NodeId; 2]>,
    /// Types of its outputs.
    pub output_types: SmallVec<[DType; 4]>,
    /// Facts about its op.
    pub facts: OpFacts,
    /// The index of its device in the list of devices.
    pub device: u32,
}

/// Finds the subgraph of a step. `placement` gives the index of each node's device in `devices`. Feeds go to the
/// first device, the master's own.
pub fn prune(graph: &FlatGraph, signature: &Signature, placement: &[u32], devices: &[Device]) -> Result<StepGraph> {
    if signature.fetches.is_empty() && signature.targets.is_empty() {
        return Err(invalid!("Must specify at least one target to fetch or execute."));
    }
    let mut step = Pruning { graph, placement, devices, fed: FxHashMap::default(), new: FxHashMap::default() };
    let feeds = signature
        .feeds
        .iter()
        .map(|name| find_tensor(graph, name, "feed_devices or feed"))
        .collect::<Result<Vec<_>>>()?;
    let fetches = signature.fetches.iter().map(|name| find_tensor(graph, name, "fetch")).collect::<Result<Vec<_>>>()?;
    let mut out = StepGraph::default();
    for (&edge, name) in feeds.iter().zip(&signature.feeds) {
        let node = step.feed_node(edge, name);
        if step.fed.insert(edge, out.nodes.len() as NodeId).is_some() {
            return Err(invalid!("Endpoint \"{name}\" fed more than once."));
        }
        out.nodes.push(node);
        out.feeds.push((name.clone(), MASTER));
    }
    let mut wanted: Vec<NodeId> = Vec::new();
    for (edge, name) in fetches.iter().zip(&signature.fetches) {
        if step.fed.contains_key(edge) {
            return Err(invalid!("Tensor {name} is both fed and fetched"));
        }
        wanted.push(edge.node);
    }
    for name in &signature.targets {
        let node = TensorName::parse(name).node;
        wanted.push(graph.find(node).ok_or_else(|| not_found!("Op {name} not found in the graph"))?);
    }
    step.collect(&wanted, &mut out);
    out.fetches = signature.fetches.iter().cloned().zip(fetches.iter().map(|&edge| step.source(edge))).collect();
    Ok(out)
}

fn find_tensor(graph: &FlatGraph, name: &str, what: &str) -> Result<Edge> {
    let parsed = TensorName::parse(name);
    let node = graph.find(parsed.node);
    let node =
        node.ok_or_else(|| not_found!("Tensor {name}, specified in either {what}, was not found in the Graph"))?;
    let index = parsed.index.unwrap_or(0);
    let outputs = graph.node(node).output_types.len();
    if index as usize >= outputs {
        return Err(invalid!("Tensor {name}: node {} has {outputs} outputs", parsed.node));
    }
    Ok(Edge { node, index })
}

struct Pruning<'a> {
    graph: &'a FlatGraph,
    placement: &'a [u32],
    devices: &'a [Device],
    /// Fed outputs, and the nodes that receive them.
    fed: FxHashMap<Edge, NodeId>,
    /// Node numbers in the step by node numbers in the graph.
    new: FxHashMap<NodeId, NodeId>,
}

impl Pruning<'_> {
    /// Collects everything reachable backwards from `wanted` without passing through a fed output.
    fn collect(&mut self, wanted: &[NodeId], out: &mut StepGraph) {
        let mut seen: FxHashSet<NodeId> = FxHashSet::default();
        let mut queue: Vec<NodeId> = wanted.iter().copied().filter(|&id| seen.insert(id)).collect();
        let mut kept = queue.clone();
        while let Some(id) = queue.pop() {
            let node = self.graph.node(id);
            let data = node.inputs.iter().filter(|edge| !self.fed.contains_key(edge)).map(|edge| edge.node);
            let controls = node.controls.iter().copied().filter(|&control| !self.is_fed_placeholder(control));
            for source in data.chain(controls) {
                if seen.insert(source) {
                    queue.push(source);
                    kept.push(source);
                }
            }
        }
        kept.sort_unstable();
        let first = out.nodes.len() as NodeId;
        self.new = kept.iter().enumerate().map(|(place, &id)| (id, first + place as NodeId)).collect();
        out.nodes.extend(kept.iter().map(|&id| self.step_node(id)));
    }

    fn step_node(&self, id: NodeId) -> StepNode {
        let node = self.graph.node(id);
        let controls = node.controls.iter().map(|control| match self.new.get(control) {
            Some(&new) => new,
            None => self.fed[&Edge { node: *control, index: 0 }],
        });
        StepNode {
            def: node.def.clone(),
            inputs: node.inputs.iter().map(|&edge| self.source(edge)).collect(),
            controls: controls.collect(),
            output_types: node.output_types.iter().copied().collect(),
            facts: node.facts,
            device: self.placement[id as usize],
        }
    }

    fn source(&self, edge: Edge) -> Edge {
        match self.fed.get(&edge) {
            Some(&node) => Edge { node, index: 0 },
            None => Edge { node: self.new[&edge.node], index: edge.index },
        }
    }

    /// True for a fed placeholder: control edges from it wait for the fed value instead.
    fn is_fed_placeholder(&self, id: NodeId) -> bool {
        self.graph.node(id).facts.is_placeholder && self.fed.contains_key(&Edge { node: id, index: 0 })
    }

    fn feed_node(&self, edge: Edge, name: &str) -> StepNode {
        let dtype = self.dtype(edge);
        let source = (&*self.graph.node(edge.node).def.name, edge.index);
        let def = exchanging(RECV, ("tensor_type", dtype), name, source, &self.devices[MASTER as usize]);
        StepNode {
            def,
            inputs: SmallVec::new(),
            controls: SmallVec::new(),
            output_types: smallvec::smallvec![dtype],
            facts: OpFacts::PLAIN,
            device: MASTER,
        }
    }

    fn dtype(&self, edge: Edge) -> DType {
        self.graph.node(edge.node).output_types[edge.index as usize].base()
    }
}

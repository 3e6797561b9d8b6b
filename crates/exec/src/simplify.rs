//! Simplifies a graph: merges equal nodes, skips identities, folds constants.
//!
//! The results of the graph do not change. Nodes with state, with control edges or in loops stay as they are.

use crate::Kernels;
use graph::builtin_ops::CONST;
use graph::{AttrValue, Edge, FlatGraph, FlatNode, Forwards, NodeDef, NodeId, OpFacts, Signatures, StaticValue};
use math::Pool;
use op::{Callable, Ctx, Functions, Resources, Run, Setup, StepEnv};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use status::{Result, not_found};
use std::sync::Arc;
use tensor::{DType, Tensor};

/// The largest constant in bytes that folding creates: a larger one costs more memory than it saves time.
const MAX_FOLDED: usize = 1 << 20;

/// Simplifies a graph. Nodes without consumers stay, because the step requested them.
pub(crate) fn simplify(graph: &mut FlatGraph, kernels: &Kernels) {
    let mut work = Simplify::new(graph, kernels);
    for id in work.order() {
        work.visit(id);
    }
    work.finish();
    crate::unread::remove_unread(graph, kernels);
    crate::join::join(graph, kernels);
}

struct Simplify<'a> {
    graph: &'a mut FlatGraph,
    kernels: &'a Kernels,
    /// Outputs that were replaced, and the outputs that replace them.
    replaced: FxHashMap<Edge, Edge>,
    /// Values of constants.
    values: FxHashMap<NodeId, Tensor>,
    /// Visited nodes, by everything that determines their value.
    seen: FxHashMap<String, NodeId>,
    /// For each node, whether another one has a control edge from it.
    waited_for: Vec<bool>,
    folded: Vec<NodeId>,
    /// For each node, whether it has no consumers: then the step requested it.
    requested: Vec<bool>,
    env: Arc<StepEnv>,
    resources: Arc<Resources>,
}

impl<'a> Simplify<'a> {
    fn new(graph: &'a mut FlatGraph, kernels: &'a Kernels) -> Simplify<'a> {
        let mut waited_for = vec![false; graph.nodes.len()];
        let mut requested = vec![true; graph.nodes.len()];
        for node in &graph.nodes {
            node.controls.iter().for_each(|&control| waited_for[control as usize] = true);
            let sources = node.inputs.iter().map(|edge| edge.node).chain(node.controls.iter().copied());
            sources.for_each(|source| requested[source as usize] = false);
        }
        Simplify {
            graph,
            kernels,
            replaced: FxHashMap::default(),
            values: FxHashMap::default(),
            seen: FxHashMap::default(),
            waited_for,
            folded: Vec::new(),
            requested,
            env: StepEnv::alone(Arc::new(Pool::new(1))),
            resources: Arc::new(Resources::new("")),
        }
    }

    fn order(&self) -> Vec<NodeId> {
        order(self.graph)
    }

    fn visit(&mut self, id: NodeId) {
        let replaced = &self.replaced;
        for edge in self.graph.nodes[id as usize].inputs.iter_mut() {
            *edge = replaced.get(edge).copied().unwrap_or(*edge);
        }
        if !self.may_change(id) {
            return;
        }
        let node = &self.graph.nodes[id as usize];
        if node.facts.forwards == Forwards::First {
            let source = node.inputs[0];
            let from_ref = self.graph.node(source.node).output_types[source.index as usize].is_ref();
            if !from_ref {
                self.replaced.insert(Edge { node: id, index: 0 }, source);
            }
            return;
        }
        if let Some(equal) = self.equal_node(id) {
            for index in 0..self.graph.node(id).output_types.len() as u32 {
                self.replaced.insert(Edge { node: id, index }, Edge { node: equal, index });
            }
            return;
        }
        self.fold(id);
    }

    /// True if a node only computes outputs from inputs, without control edges to or from other nodes.
    fn may_change(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let Some(signature) = self.kernels.registry().signature(&node.def.op) else { return false };
        let has_refs = node.input_types.iter().chain(&node.output_types).any(|dtype| dtype.is_ref());
        !signature.stateful
            && !has_refs
            && node.controls.is_empty()
            && !self.waited_for[id as usize]
            && !node.output_types.is_empty()
            && !node.facts.depends_on_step()
            && !self.kernels.is_of_device_type(&node.def)
    }

    /// An earlier node that has the same value.
    fn equal_node(&mut self, id: NodeId) -> Option<NodeId> {
        let node = self.graph.node(id);
        if node.facts.static_value == StaticValue::Attribute {
            return None; // comparing large constants costs more than it saves
        }
        let attrs: Vec<_> = node.def.attrs.iter().filter(|(name, _)| !name.starts_with('_')).collect();
        if attrs.iter().any(|(_, value)| matches!(value, AttrValue::Tensor(_))) {
            return None;
        }
        let key = format!("{} {} {:?} {attrs:?}", node.def.op, node.def.device, node.inputs);
        match self.seen.get(&key) {
            Some(&equal) => Some(equal),
            None => {
                self.seen.insert(key, id);
                None
            }
        }
    }

    /// Computes a node whose inputs are all constants.
    fn fold(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        if node.facts.static_value == StaticValue::Attribute {
            if let Some(AttrValue::Tensor(value)) = node.def.attrs.get("value")
                && value.encoded().elements().is_some_and(|count| count <= MAX_FOLDED / 16)
                && let Ok(value) = value.decode()
            {
                self.values.insert(id, value);
            }
            return;
        }
        // Objects of the process, such as datasets, cannot be the value of an attribute.
        if node.inputs.is_empty() || !matches!(node.output_types[..], [dtype] if !is_object(dtype)) {
            return;
        }
        let inputs: Option<Vec<Tensor>> =
            node.inputs.iter().map(|edge| self.values.get(&edge.node).filter(|_| edge.index == 0).cloned()).collect();
        if let Some(inputs) = inputs
            && let Some(value) = self.compute(node, inputs)
            && value.byte_size() <= MAX_FOLDED
        {
            self.values.insert(id, value);
            self.folded.push(id);
        }
    }

    fn compute(&self, node: &FlatNode, inputs: Vec<Tensor>) -> Option<Tensor> {
        let signature = self.kernels.registry().signature(&node.def.op)?;
        let types = (&node.input_types[..], &node.output_types[..]);
        let setup = Setup::new(&node.def, signature, types, &node.def.device, &self.resources, &NoFunctions);
        let kernel = self.kernels.registry().kernel(&setup).ok()?;
        let ctx = Ctx { env: &self.env, frame: 0, iteration: 0 };
        let mut inputs = inputs.into_iter();
        let run = std::panic::AssertUnwindSafe(|| match &kernel.run {
            Run::Unary(run) => run(&ctx, inputs.next()?).ok(),
            Run::Binary(run) => run(&ctx, inputs.next()?, inputs.next()?).ok(),
            Run::Many(run) => {
                let mut outputs = run(&ctx, inputs.map(op::Value::Tensor).collect()).ok()?;
                match (outputs.pop(), outputs.is_empty()) {
                    (Some(op::Value::Tensor(tensor)), true) => Some(tensor),
                    _ => None,
                }
            }
            _ => None,
        });
        // If the op fails on these inputs, the error belongs to the steps that run it.
        std::panic::catch_unwind(run).ok().flatten()
    }

    /// Replaces folded nodes by constants and removes unused nodes.
    fn finish(self) {
        for id in &self.folded {
            let value = self.values[id].clone();
            let node = &mut self.graph.nodes[*id as usize];
            let attrs = [("dtype", value.dtype().into()), ("value", AttrValue::from(value))];
            node.def = Arc::new(NodeDef {
                op: CONST.to_string(),
                inputs: Vec::new(),
                attrs: attrs.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
                ..(*node.def).clone()
            });
            node.facts = OpFacts { static_value: StaticValue::Attribute, ..OpFacts::PLAIN };
            node.inputs.clear();
            node.input_types.clear();
        }
        drop_unused(self.graph, self.kernels, &self.requested);
    }
}

fn is_object(dtype: DType) -> bool {
    matches!(dtype, DType::RESOURCE | DType::VARIANT)
}

/// The nodes in topological order, without those that are in a loop or behind one.
pub(crate) fn order(graph: &FlatGraph) -> Vec<NodeId> {
    let nodes = &graph.nodes;
    let mut waiting: Vec<u32> = nodes.iter().map(|node| (node.inputs.len() + node.controls.len()) as u32).collect();
    let mut consumers: Vec<SmallVec<[NodeId; 4]>> = vec![SmallVec::new(); nodes.len()];
    for (id, node) in nodes.iter().enumerate() {
        for source in node.inputs.iter().map(|edge| edge.node).chain(node.controls.iter().copied()) {
            consumers[source as usize].push(id as NodeId);
        }
    }
    let mut order: Vec<NodeId> = (0..nodes.len() as NodeId).filter(|&id| waiting[id as usize] == 0).collect();
    let mut next = 0;
    while let Some(&id) = order.get(next) {
        next += 1;
        for &consumer in &consumers[id as usize] {
            waiting[consumer as usize] -= 1;
            if waiting[consumer as usize] == 0 {
                order.push(consumer);
            }
        }
    }
    order
}

/// Removes nodes that are no longer used: nodes without side effects whose consumers were merged, skipped or folded.
fn drop_unused(graph: &mut FlatGraph, kernels: &Kernels, requested: &[bool]) {
    let count = graph.nodes.len();
    let mut needed = vec![false; count];
    let mut queue: Vec<NodeId> = Vec::new();
    for (id, node) in graph.nodes.iter().enumerate() {
        let signature = kernels.registry().signature(&node.def.op);
        let acts = signature.is_none_or(|signature| signature.stateful) || node.output_types.is_empty();
        let controls = node.facts.depends_on_step() || !node.controls.is_empty();
        if requested[id] || acts || controls || node.output_types.iter().any(|dtype| dtype.is_ref()) {
            queue.push(id as NodeId);
        }
    }
    let waited: Vec<NodeId> = graph.nodes.iter().flat_map(|node| node.controls.iter().copied()).collect();
    queue.extend(waited);
    while let Some(id) = queue.pop() {
        if std::mem::replace(&mut needed[id as usize], true) {
            continue;
        }
        let node = &graph.nodes[id as usize];
        queue.extend(node.inputs.iter().map(|edge| edge.node));
    }
    graph.retain(&needed);
}

/// Constant folding calls no functions.
struct NoFunctions;

impl Functions for NoFunctions {
    fn instantiate(&self, function: &graph::Function, _: &str) -> Result<Arc<dyn Callable>> {
        Err(not_found!("Function {} is not defined", function.name))
    }
}

//! Graphs with resolved names: nodes by number, edges by node number and output index.

use crate::signature::Types;
use crate::{ControlFlow, FunctionCall, FunctionLibrary, GraphDef, NodeDef, OpFacts, Signatures, Versions};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use status::{Result, invalid, not_found, unimplemented_op};
use std::sync::Arc;

/// The number of a node: its index in the graph.
pub type NodeId = u32;

/// An output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// The node.
    pub node: NodeId,
    /// The index of the output.
    pub index: u32,
}

/// A node with resolved inputs.
#[derive(Clone, Debug)]
pub struct FlatNode {
    /// Its description.
    pub def: Arc<NodeDef>,
    /// Data inputs, in order.
    pub inputs: SmallVec<[Edge; 3]>,
    /// Nodes that must have run before.
    pub controls: SmallVec<[NodeId; 2]>,
    /// Types of the inputs as the op declares them, references included.
    pub input_types: Types,
    /// Types of the outputs, references included.
    pub output_types: Types,
    /// Facts about its op, looked up once, when the node was added.
    pub facts: OpFacts,
}

/// A graph whose names are resolved and whose edges are type-checked.
#[derive(Clone, Default)]
pub struct FlatGraph {
    /// The nodes, by number.
    pub nodes: Vec<FlatNode>,
    /// Functions the nodes may call.
    pub library: Arc<FunctionLibrary>,
    /// Versions of the producer.
    pub versions: Versions,
    names: FxHashMap<String, NodeId>,
}

/// The attribute of a node that has the outputs of a lowered conditional or loop of the same name.
pub const LOWERED: &str = "_lowered";

/// A reference to a node's output, as users write it: `x`, `x:1` or `^x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorName<'a> {
    /// The node.
    pub node: &'a str,
    /// The index of the output; none for a control edge.
    pub index: Option<u32>,
}

impl<'a> TensorName<'a> {
    /// Parses `x`, `x:1` or `^x`. A suffix that is not a number belongs to the name.
    pub fn parse(text: &'a str) -> TensorName<'a> {
        if let Some(node) = text.strip_prefix('^') {
            return TensorName { node, index: None };
        }
        match text.rsplit_once(':').map(|(node, index)| (node, index.parse())) {
            Some((node, Ok(index))) => TensorName { node, index: Some(index) },
            _ => TensorName { node: text, index: Some(0) },
        }
    }
}

impl FlatGraph {
    /// Resolves a whole graph.
    pub fn new(def: &GraphDef, ops: &dyn Signatures) -> Result<FlatGraph> {
        let mut graph = FlatGraph { versions: def.versions.clone(), ..FlatGraph::default() };
        graph.extend(def, ops)?;
        Ok(graph)
    }

    /// An empty graph whose nodes may call these functions.
    pub fn with_library(library: Arc<FunctionLibrary>) -> FlatGraph {
        FlatGraph { library, ..FlatGraph::default() }
    }

    /// Adds the nodes of `def`, which may refer to existing ones. On an error the graph is unchanged.
    pub fn extend(&mut self, def: &GraphDef, ops: &dyn Signatures) -> Result<()> {
        let before = self.nodes.len();
        let library = merge(&self.library, &def.library)?;
        let old = std::mem::replace(&mut self.library, library);
        let result = self.add_all(def, ops);
        if result.is_err() {
            self.library = old;
            self.nodes.truncate(before);
            self.names.retain(|_, id| (*id as usize) < before);
        }
        result
    }

    fn add_all(&mut self, def: &GraphDef, ops: &dyn Signatures) -> Result<()> {
        let first = self.nodes.len();
        self.nodes.reserve(def.nodes.len());
        for node in &def.nodes {
            self.add_node(node, ops).map_err(|error| error.at_node(&node.name))?;
        }
        for id in first..self.nodes.len() {
            let (inputs, controls) = self.resolve(id as NodeId)?;
            let node = &mut self.nodes[id];
            (node.inputs, node.controls) = (inputs, controls);
        }
        self.check_cycles()
    }

    fn add_node(&mut self, def: &Arc<NodeDef>, ops: &dyn Signatures) -> Result<()> {
        if !valid_name(&def.name) {
            return Err(invalid!("Node '{}': Node name contains invalid characters", def.name));
        }
        let library = self.library.clone();
        let signature = library
            .functions
            .get(&def.op)
            .map(|function| &function.signature)
            .or_else(|| ops.signature(&def.op))
            .ok_or_else(|| unknown_op(&def.op))?;
        if let Some((version, instead)) = ops.deprecated(&def.op)
            && self.versions.producer >= version
        {
            let (op, own) = (&def.op, self.versions.producer);
            return Err(unimplemented_op!(
                "Op {op} is not available in GraphDef version {own}. It has been removed in version {version}. {instead}."
            ));
        }
        signature.check_attrs(def)?;
        let node = FlatNode {
            def: def.clone(),
            inputs: SmallVec::new(),
            controls: SmallVec::new(),
            input_types: signature.input_types(def)?,
            output_types: signature.output_types(def)?,
            facts: ops.op_facts(&def.op),
        };
        let id = self.nodes.len() as NodeId;
        if self.names.insert(def.name.clone(), id).is_some_and(|old| (old as usize) < self.nodes.len()) {
            return Err(invalid!("Node '{}' is not unique", def.name));
        }
        self.nodes.push(node);
        Ok(())
    }

    #[allow(clippy::type_complexity)]
    fn resolve(&self, id: NodeId) -> Result<(SmallVec<[Edge; 3]>, SmallVec<[NodeId; 2]>)> {
        let node = &self.nodes[id as usize];
        let (mut inputs, mut controls) = (SmallVec::new(), SmallVec::new());
        for text in &node.def.inputs {
            let name = TensorName::parse(text);
            let source = self.find(name.node).ok_or_else(|| {
                invalid!("Node '{}': Unknown input node '{text}'", node.def.name).at_node(&node.def.name)
            })?;
            match name.index {
                None => controls.push(source),
                Some(_) if !controls.is_empty() => {
                    return Err(invalid!(
                        "Node '{}': Control dependencies must come after regular dependencies",
                        node.def.name
                    ));
                }
                Some(index) => inputs.push(Edge { node: source, index }),
            }
        }
        self.check_inputs(node, &inputs)?;
        Ok((inputs, controls))
    }

    fn check_inputs(&self, node: &FlatNode, inputs: &[Edge]) -> Result<()> {
        if inputs.len() != node.input_types.len() {
            let expected: Vec<String> = node.input_types.iter().map(|dtype| dtype.to_string()).collect();
            return Err(invalid!(
                "NodeDef expected inputs '{}' do not match {} inputs specified; Op<name={}>; NodeDef: {{{{node {}}}}}",
                expected.join(", "),
                inputs.len(),
                node.def.op,
                node.def.name
            ));
        }
        for (place, (edge, &wanted)) in inputs.iter().zip(&node.input_types).enumerate() {
            let source = &self.nodes[edge.node as usize];
            let Some(&found) = source.output_types.get(edge.index as usize) else {
                let is_branch = matches!(source.facts.function_call, Some(FunctionCall::If | FunctionCall::While))
                    || source.def.attrs.contains_key(LOWERED);
                return Err(invalid!(
                    "Node '{}': Connecting to invalid output {} of source node {} which has {} outputs.{}",
                    node.def.name,
                    edge.index,
                    source.def.name,
                    source.output_types.len(),
                    if is_branch { " Try using tf.compat.v1.experimental.output_all_intermediates(True)." } else { "" }
                ));
            };
            if found.base() != wanted.base() || (wanted.is_ref() && !found.is_ref()) {
                return Err(invalid!(
                    "Input {place} of node {} was passed {found} from {}:{} incompatible with expected {wanted}.",
                    node.def.name,
                    source.def.name,
                    edge.index
                )
                .at_node(&node.def.name));
            }
        }
        Ok(())
    }

    /// Checks for cycles. Only a back edge from NextIteration may close one.
    fn check_cycles(&self) -> Result<()> {
        let count = self.nodes.len();
        let mut waiting = vec![0u32; count];
        let mut consumers: Vec<SmallVec<[NodeId; 4]>> = vec![SmallVec::new(); count];
        for (id, node) in self.nodes.iter().enumerate() {
            for source in node.inputs.iter().map(|edge| edge.node).chain(node.controls.iter().copied()) {
                if !self.nodes[source as usize].facts.is(ControlFlow::NextIteration) {
                    waiting[id] += 1;
                    consumers[source as usize].push(id as NodeId);
                }
            }
        }
        let mut ready: Vec<NodeId> = (0..count as NodeId).filter(|&id| waiting[id as usize] == 0).collect();
        let mut seen = 0;
        while let Some(id) = ready.pop() {
            seen += 1;
            for &consumer in &consumers[id as usize] {
                waiting[consumer as usize] -= 1;
                if waiting[consumer as usize] == 0 {
                    ready.push(consumer);
                }
            }
        }
        if seen == count {
            return Ok(());
        }
        let on_cycle = (0..count).find(|&id| waiting[id] > 0).map_or("", |id| &self.nodes[id].def.name);
        Err(invalid!("{} nodes in a cycle, '{on_cycle}' among them", count - seen))
    }

    /// Removes the nodes for which `keep` is false. The others must not refer to them.
    pub fn retain(&mut self, keep: &[bool]) {
        let mut next = 0;
        let numbers: Vec<NodeId> = keep
            .iter()
            .map(|&keep| {
                next += NodeId::from(keep);
                next.wrapping_sub(1)
            })
            .collect();
        let mut place = 0;
        self.nodes.retain(|_| {
            place += 1;
            keep[place - 1]
        });
        for node in &mut self.nodes {
            node.inputs.iter_mut().for_each(|edge| edge.node = numbers[edge.node as usize]);
            node.controls.iter_mut().for_each(|control| *control = numbers[*control as usize]);
        }
        self.names.retain(|_, id| keep[*id as usize]);
        self.names.values_mut().for_each(|id| *id = numbers[*id as usize]);
    }

    /// The node with this name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }

    /// The node with this number.
    pub fn node(&self, id: NodeId) -> &FlatNode {
        &self.nodes[id as usize]
    }
}

/// The error for an op that is not registered.
pub(crate) fn unknown_op(op: &str) -> status::Error {
    not_found!(
        "Op type not registered '{op}' in binary running on this task. Make sure the Op and Kernel are registered in \
         the binary running in this process. Flowgrid does not implement this op: check its spelling, build the graph \
         from other ops, or open the session on a TensorFlow server and place the op on a TensorFlow task"
    )
}

/// Letters, digits and `_.\-/>` after a first letter, digit, dot or underscore.
fn valid_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b"_.\\-/>".contains(&b))
}

/// Merges two libraries; a function that is in both must be the same.
fn merge(old: &Arc<FunctionLibrary>, new: &FunctionLibrary) -> Result<Arc<FunctionLibrary>> {
    if new.functions.is_empty() && new.gradients.is_empty() {
        return Ok(old.clone());
    }
    let mut merged = (**old).clone();
    for (name, function) in &new.functions {
        match merged.functions.get(name) {
            Some(known) if known != function => {
                return Err(invalid!(
                    "Cannot add function '{name}' because a different function with the same name already exists."
                ));
            }
            Some(_) => {}
            None => drop(merged.functions.insert(name.clone(), function.clone())),
        }
    }
    merged.gradients.extend(new.gradients.clone());
    Ok(Arc::new(merged))
}

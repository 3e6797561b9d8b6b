//! A node of a graph under construction.

use crate::build::graph::Built;
use crate::{AttrValue, Graph, NodeDef, NodeId, Output, Scope};
use status::{Result, internal, invalid};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use tensor::{DType, PartialShape};

/// A node, with the scope it was created in. A node that could not be built has the id `INVALID_NODE`; its graph holds the
/// error.
#[derive(Clone)]
pub struct Node {
    scope: Scope,
    id: NodeId,
}

/// The id of a node that could not be built.
pub(crate) const INVALID_NODE: NodeId = NodeId::MAX;

impl Node {
    pub(crate) fn new(scope: &Scope, id: NodeId) -> Node {
        Node { scope: scope.clone(), id }
    }

    /// The node with this id; further nodes built from it go to `scope`.
    pub fn of(scope: &Scope, id: NodeId) -> Option<Node> {
        ((id as usize) < scope.graph().len()).then(|| Node::new(scope, id))
    }

    /// The node with this name; further nodes built from it go to `scope`.
    pub fn find(scope: &Scope, name: &str) -> Option<Node> {
        let id = *scope.graph().lock().names.get(name)?;
        Some(Node::new(scope, id))
    }

    /// The scope it was created in.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The same node, whose outputs build further nodes in `scope`.
    pub fn seen_from(&self, scope: &Scope) -> Node {
        Node::new(scope, self.id)
    }

    /// The graph it is in.
    pub fn graph(&self) -> &Graph {
        self.scope.graph()
    }

    /// Its id: its position in the graph.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.def().name.clone()
    }

    /// The name of its op.
    pub fn op(&self) -> String {
        self.def().op.clone()
    }

    /// The device it asks for. A node that names none, but is colocated with another, asks for the device of that one.
    pub fn device(&self) -> String {
        let mut def = self.def();
        let inner = self.graph().lock();
        // A chain of colocations leads to nodes that were built earlier, so it ends.
        while def.device.is_empty() {
            let Some(next) = colocated_with(&def).and_then(|name| inner.names.get(name)) else { break };
            let next = inner.nodes[*next as usize].def.clone();
            if next.name == def.name {
                break;
            }
            def = next;
        }
        def.device.clone()
    }

    /// Its description.
    pub fn def(&self) -> Arc<NodeDef> {
        self.built().map(|built| built.def).unwrap_or_default()
    }

    /// The value of an attribute, or its default.
    pub fn attr(&self, name: &str) -> Result<AttrValue> {
        let def = self.def();
        if let Some(value) = def.attrs.get(name) {
            return Ok(value.clone());
        }
        let ops = self.graph().ops();
        let signature = ops.signature(&def.op).ok_or_else(|| internal!("op {} has no signature", def.op))?;
        signature.value(&def, name).cloned()
    }

    /// An attribute that is a type.
    pub fn attr_type(&self, name: &str) -> Result<DType> {
        match self.attr(name)? {
            AttrValue::Type(dtype) => Ok(dtype),
            _ => Err(invalid!("attr '{name}' of {} is not of type 'type'", self.name())),
        }
    }

    /// An attribute that is a bool.
    pub fn attr_bool(&self, name: &str) -> Result<bool> {
        match self.attr(name)? {
            AttrValue::Bool(value) => Ok(value),
            _ => Err(invalid!("attr '{name}' of {} is not of type 'bool'", self.name())),
        }
    }

    /// An attribute that is an integer.
    pub fn attr_int(&self, name: &str) -> Result<i64> {
        match self.attr(name)? {
            AttrValue::Int(value) => Ok(value),
            _ => Err(invalid!("attr '{name}' of {} is not of type 'int'", self.name())),
        }
    }

    /// Its inputs, if there are exactly `N`.
    pub fn inputs<const N: usize>(&self) -> Result<[Output; N]> {
        let all = self.all_inputs();
        let found = all.len();
        all.try_into().map_err(|_| internal!("{} has {found} inputs where {N} were expected", self.name()))
    }

    /// All its inputs.
    pub fn all_inputs(&self) -> Vec<Output> {
        let edges = self.built().map(|built| built.inputs).unwrap_or_default();
        edges.iter().map(|edge| Output::new(Node::new(&self.scope, edge.node), edge.index)).collect()
    }

    /// One of its inputs.
    pub fn input(&self, index: usize) -> Output {
        let edge = self.built().and_then(|built| built.inputs.get(index).copied());
        match edge {
            Some(edge) => Output::new(Node::new(&self.scope, edge.node), edge.index),
            None => Output::new(Node::new(&self.scope, INVALID_NODE), 0),
        }
    }

    /// One of its outputs.
    pub fn output(&self, index: usize) -> Output {
        Output::new(self.clone(), index as u32)
    }

    /// The number of its outputs.
    pub fn num_outputs(&self) -> usize {
        self.built().map_or(0, |built| built.types.len())
    }

    /// All its outputs.
    pub fn outputs(&self) -> Vec<Output> {
        (0..self.num_outputs()).map(|index| self.output(index)).collect()
    }

    /// This node and every node that it needs, directly or not, each once; this node is first.
    pub fn with_ancestors(&self) -> Vec<Node> {
        let (mut seen, mut found) = (HashSet::from([self.name()]), vec![self.clone()]);
        let mut next = 0;
        while let Some(node) = found.get(next).cloned() {
            next += 1;
            for input in &node.def().inputs {
                let name = input.trim_start_matches('^').split(':').next().unwrap_or_default();
                if let Some(node) = Node::find(&self.scope, name).filter(|_| seen.insert(name.to_string())) {
                    found.push(node);
                }
            }
        }
        found
    }

    /// Clears the static shapes of the outputs: a value may change its shape from one iteration to the next.
    pub(crate) fn forget_shapes(&self) {
        if let Some(built) = self.graph().lock().nodes.get_mut(self.id as usize) {
            built.shapes.fill(PartialShape::unknown());
        }
    }

    pub(crate) fn built(&self) -> Option<Built> {
        self.graph().lock().nodes.get(self.id as usize).cloned()
    }
}

/// The node that the first colocation group of `def` is named after.
fn colocated_with(def: &NodeDef) -> Option<&str> {
    let Some(AttrValue::List(groups)) = def.attrs.get("_class") else { return None };
    groups.strings.iter().find_map(|group| std::str::from_utf8(group).ok()?.strip_prefix("loc:@"))
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.id == other.id && self.graph().is_same(other.graph())
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())
    }
}

//! A node of a graph under construction.

use crate::build::graph::Built;
use crate::{AttrValue, Graph, NodeDef, NodeId, Output, Scope};
use status::{Result, internal, invalid};
use std::fmt;
use std::sync::Arc;
use tensor::{DType, PartialShape};

/// A node; carries the scope it was made in. A node that could not be built is a husk: its graph
/// holds the error.
#[derive(Clone)]
pub struct Node {
    scope: Scope,
    id: NodeId,
}

/// The number of nodes that could not be built.
pub(crate) const HUSK: NodeId = NodeId::MAX;

impl Node {
    pub(crate) fn new(scope: &Scope, id: NodeId) -> Node {
        Node { scope: scope.clone(), id }
    }

    /// The node with this number, seen from `scope`.
    pub fn of(scope: &Scope, id: NodeId) -> Option<Node> {
        ((id as usize) < scope.graph().len()).then(|| Node::new(scope, id))
    }

    /// The node with this name, seen from `scope`.
    pub fn find(scope: &Scope, name: &str) -> Option<Node> {
        let id = *scope.graph().lock().names.get(name)?;
        Some(Node::new(scope, id))
    }

    /// The scope it was made in.
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

    /// Its number.
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

    /// As described.
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
            _ => Err(invalid!("attr '{name}' of {} is not a type", self.name())),
        }
    }

    /// An attribute that is a truth value.
    pub fn attr_bool(&self, name: &str) -> Result<bool> {
        match self.attr(name)? {
            AttrValue::Bool(value) => Ok(value),
            _ => Err(invalid!("attr '{name}' of {} is not a bool", self.name())),
        }
    }

    /// An attribute that is an integer.
    pub fn attr_int(&self, name: &str) -> Result<i64> {
        match self.attr(name)? {
            AttrValue::Int(value) => Ok(value),
            _ => Err(invalid!("attr '{name}' of {} is not an int", self.name())),
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
            None => Output::new(Node::new(&self.scope, HUSK), 0),
        }
    }

    /// One of its outputs.
    pub fn output(&self, index: usize) -> Output {
        Output::new(self.clone(), index as u32)
    }

    /// How many outputs it has.
    pub fn num_outputs(&self) -> usize {
        self.built().map_or(0, |built| built.types.len())
    }

    /// All its outputs.
    pub fn outputs(&self) -> Vec<Output> {
        (0..self.num_outputs()).map(|index| self.output(index)).collect()
    }

    /// What comes round in a loop may have another shape than what went in.
    pub(crate) fn forget_shapes(&self) {
        if let Some(built) = self.graph().lock().nodes.get_mut(self.id as usize) {
            built.shapes.fill(PartialShape::unknown());
        }
    }

    pub(crate) fn built(&self) -> Option<Built> {
        self.graph().lock().nodes.get(self.id as usize).cloned()
    }
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

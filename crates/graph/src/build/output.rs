//! An output of a node: the operand of expressions.

use crate::{Node, Scope};
use std::fmt;
use tensor::{DType, PartialShape, Tensor};

/// A node's output, with the scope in which further nodes are built.
#[derive(Clone, PartialEq)]
pub struct Output {
    node: Node,
    index: u32,
}

impl Output {
    pub(crate) fn new(node: Node, index: u32) -> Output {
        Output { node, index }
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The index among the node's outputs.
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// The scope in which nodes built from this output are made.
    pub fn scope(&self) -> &Scope {
        self.node.scope()
    }

    /// The same output, from which further nodes are built in `scope`.
    pub fn seen_from(&self, scope: &Scope) -> Output {
        Output::new(self.node.seen_from(scope), self.index)
    }

    /// `node:index`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.node.name(), self.index)
    }

    /// The element type, without the reference; invalid if the node could not be built.
    pub fn dtype(&self) -> DType {
        self.full_dtype().base()
    }

    /// The element type, with the reference if it is one.
    pub fn full_dtype(&self) -> DType {
        self.node.built().and_then(|built| built.types.get(self.index()).copied()).unwrap_or(DType::INVALID)
    }

    /// The static shape.
    pub fn shape(&self) -> PartialShape {
        let built = self.node.built();
        built.and_then(|built| built.shapes.get(self.index()).cloned()).unwrap_or(PartialShape::unknown())
    }

    /// The static value, if it is known and small.
    pub fn constant(&self) -> Option<Tensor> {
        self.node.built().filter(|_| self.index == 0)?.constant
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

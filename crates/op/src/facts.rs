//! What the planner, the executor and the gradient walk need to know about an op beyond its signature and kernel.
//!
//! A row states its facts, so that no other crate has to list op names:
//!
//! ```
//! # use flowgrid_op::PLAIN;
//! # use flowgrid_op::fused::Unary;
//! let facts = PLAIN.unary(Unary::Relu);
//! ```

use crate::Elementwise;
use math::fused::{Binary, Unary};

/// The facts of an op. A row begins with `PLAIN` and adds what applies.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// What the op does to each 32-bit float, if it works element by element and broadcasts: chains of such ops are
    /// fused. An op that rejects operands of different shapes does not set it, because the fused op would broadcast.
    pub elementwise: Option<Elementwise>,
    /// The version of graphs from which on the op is rejected, and what to use instead.
    pub removed_in: Option<(i32, &'static str)>,
}

/// An op about which no other crate needs to know anything.
pub const PLAIN: Facts = Facts { elementwise: None, removed_in: None };

impl Facts {
    /// Works on each element of its one input.
    pub const fn unary(self, function: Unary) -> Facts {
        Facts { elementwise: Some(Elementwise::Unary(function)), ..self }
    }

    /// Works on each pair of elements of its two inputs, with broadcasting.
    pub const fn binary(self, function: Binary) -> Facts {
        Facts { elementwise: Some(Elementwise::Binary(function)), ..self }
    }

    /// Graphs of this version or newer may not use the op.
    pub const fn removed_in(self, version: i32, instead: &'static str) -> Facts {
        Facts { removed_in: Some((version, instead)), ..self }
    }
}

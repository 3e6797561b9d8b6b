//! What the other crates need to know about an op beyond its signature and kernel.
//!
//! A row states its facts, so that no other crate has to recognise an op by its name:
//!
//! ```
//! # use flowgrid_op::PLAIN;
//! # use math::fused::Unary;
//! let facts = PLAIN.unary(Unary::Relu).activation();
//! ```

use crate::Elementwise;
use graph::{ControlFlow, Forwards, FunctionCall, OpFacts, StateRole, StaticValue, VariableKind};
use math::fused::{Binary, Unary};

/// The facts of an op. A row begins with `PLAIN` and adds what applies.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// What building, planning and running a graph need to know.
    pub graph: OpFacts,
    /// What the op does to each 32-bit float, if it works element by element and broadcasts: chains of such ops are
    /// fused. An op that rejects operands of different shapes does not set it, because the fused op would broadcast.
    pub elementwise: Option<Elementwise>,
    /// Its part in a node that does the work of several.
    pub fusion: Option<Fusion>,
    /// Its gradient is the gradient of its output, unchanged: slices of a sparse gradient stay slices.
    pub passes_gradient: bool,
    /// The version of graphs from which on the op is rejected, and what to use instead.
    pub removed_in: Option<(i32, &'static str)>,
}

/// The part of an op in a node that computes a product, adds a bias and applies an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fusion {
    /// Computes the product.
    Product {
        /// The op that also adds the bias.
        combined: &'static str,
        /// The attribute of that op with the types of the added inputs, if they may differ from that of the product.
        arg_types: Option<&'static str>,
    },
    /// Is such a combined op: an activation can follow.
    Combined,
    /// Adds the bias.
    Bias,
    /// Applies an activation that the combined ops know by the name of this op.
    Activation,
}

/// An op about which no other crate needs to know anything.
pub const PLAIN: Facts =
    Facts { graph: OpFacts::PLAIN, elementwise: None, fusion: None, passes_gradient: false, removed_in: None };

impl Facts {
    /// Works on each element of its one input.
    pub const fn unary(self, function: Unary) -> Facts {
        Facts { elementwise: Some(Elementwise::Unary(function)), ..self }
    }

    /// Works on each pair of elements of its two inputs, with broadcasting.
    pub const fn binary(self, function: Binary) -> Facts {
        Facts { elementwise: Some(Elementwise::Binary(function)), ..self }
    }

    /// Is a product with this combined op, which also adds a bias; see [`Fusion::Product`].
    pub const fn product(self, combined: &'static str, arg_types: Option<&'static str>) -> Facts {
        Facts { fusion: Some(Fusion::Product { combined, arg_types }), ..self }
    }

    /// Is a product with a bias, which can be combined with an activation.
    pub const fn combined(self) -> Facts {
        Facts { fusion: Some(Fusion::Combined), ..self }
    }

    /// Adds a bias, and can be combined with the product before it.
    pub const fn bias(self) -> Facts {
        Facts { fusion: Some(Fusion::Bias), ..self }
    }

    /// Is an activation that the combined ops can apply.
    pub const fn activation(self) -> Facts {
        Facts { fusion: Some(Fusion::Activation), ..self }
    }

    /// Passes gradients to its first input unchanged, slices too.
    pub const fn passes_gradient(self) -> Facts {
        Facts { passes_gradient: true, ..self }
    }

    /// Has this role in control flow.
    pub const fn control_flow(self, role: ControlFlow) -> Facts {
        self.with(OpFacts { control_flow: Some(role), ..self.graph })
    }

    /// Calls functions in this way.
    pub const fn calls(self, call: FunctionCall) -> Facts {
        self.with(OpFacts { function_call: Some(call), ..self.graph })
    }

    /// Returns its first input unchanged, or each of its inputs.
    pub const fn forwards(self, forwards: Forwards) -> Facts {
        self.with(OpFacts { forwards, ..self.graph })
    }

    /// This is known about its first output while the graph is built.
    pub const fn static_value(self, static_value: StaticValue) -> Facts {
        self.with(OpFacts { static_value, ..self.graph })
    }

    /// Creates a variable of this kind.
    pub const fn variable(self, kind: VariableKind) -> Facts {
        self.with(OpFacts { variable: Some(kind), ..self.graph }).holds_shared_state()
    }

    /// Holds state that all workers share, and therefore belongs on a parameter server.
    pub const fn holds_shared_state(self) -> Facts {
        self.with(OpFacts { holds_shared_state: true, ..self.graph })
    }

    /// Its outputs are objects that cannot leave their device.
    pub const fn outputs_stay(self) -> Facts {
        self.with(OpFacts { outputs_stay: true, ..self.graph })
    }

    /// Does this with the state of a training program.
    pub const fn state_role(self, role: StateRole) -> Facts {
        self.with(OpFacts { state_role: Some(role), ..self.graph })
    }

    /// Stands for a value that the client feeds.
    pub const fn placeholder(self) -> Facts {
        self.with(OpFacts { is_placeholder: true, ..self.graph })
    }

    /// Inspects the shape of its input only.
    pub const fn reads_shape_only(self) -> Facts {
        self.with(OpFacts { reads_shape_only: true, ..self.graph })
    }

    /// Must run although no node reads its outputs.
    pub const fn runs_unread(self) -> Facts {
        self.with(OpFacts { runs_unread: true, ..self.graph })
    }

    /// Graphs of this version or newer may not use the op.
    pub const fn removed_in(self, version: i32, instead: &'static str) -> Facts {
        Facts { removed_in: Some((version, instead)), ..self }
    }

    const fn with(self, graph: OpFacts) -> Facts {
        Facts { graph, ..self }
    }
}

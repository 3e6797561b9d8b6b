//! What building, planning and running a graph need to know about an op, beyond its signature.
//!
//! The row of an op states these facts, and [`crate::Signatures::op_facts`] hands them out. So no algorithm on graphs
//! has to recognise an op by its name.

/// The facts about an op that concern the graph around a node. `PLAIN` fits an op that computes its outputs from its
/// inputs and does nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpFacts {
    /// Its role in the primitives of control flow.
    pub control_flow: Option<ControlFlow>,
    /// How it calls the functions in its attributes.
    pub function_call: Option<FunctionCall>,
    /// Which inputs it returns unchanged.
    pub forwards: Forwards,
    /// What is known about its first output while the graph is built.
    pub static_value: StaticValue,
    /// The kind of variable it creates.
    pub variable: Option<VariableKind>,
    /// Its value may be fed: it stands for a value that the client provides.
    pub is_placeholder: bool,
    /// Inspects the shape of its input, but not the elements.
    pub reads_shape_only: bool,
    /// Must run although no node reads its outputs, because it checks or records something.
    pub runs_unread: bool,
    /// Holds state that all workers of a job share: by default its nodes are placed on a parameter server.
    pub holds_shared_state: bool,
    /// Its outputs are objects that cannot leave their device, so the nodes that read them run there.
    pub outputs_stay: bool,
    /// What it does with state that programs look for in a graph.
    pub state_role: Option<StateRole>,
}

/// The primitives of control flow, with which conditionals and loops are made. The variant of an op for references
/// has the same role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFlow {
    /// Passes its first input to one of its outputs; the others are dead.
    Switch,
    /// Passes on the first input that is not dead.
    Merge,
    /// Passes a value into a loop.
    Enter,
    /// Passes a value out of a loop.
    Exit,
    /// Passes a value to the next iteration of a loop: the only edge that may close a cycle.
    NextIteration,
    /// The condition of a loop.
    LoopCond,
    /// Runs even if its control inputs are dead.
    Trigger,
}

/// How an op calls functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionCall {
    /// Calls the function in its attribute `f` with its inputs, and does nothing else.
    Plain,
    /// Calls `then_branch` or `else_branch`, as its first input says.
    If,
    /// Calls one of the functions in `branches`, as its first input says.
    Case,
    /// Calls `body` as long as `cond` is true.
    While,
}

/// Which inputs an op returns unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwards {
    /// None.
    #[default]
    Nothing,
    /// Its output is its first input.
    First,
    /// Each output is the input with the same index.
    Each,
}

/// What is known about the first output of an op before any step runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StaticValue {
    /// Nothing but type and shape.
    #[default]
    Unknown,
    /// The tensor in its attribute `value`.
    Attribute,
    /// The shape of its input.
    InputShape,
    /// What is known about its input.
    Input,
}

/// How a variable is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// By a reference, which is the op's output.
    Reference,
    /// By a resource handle.
    Resource,
}

/// What an op does with the state of a training program: savers, hooks and monitoring find their nodes by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateRole {
    /// Creates a queue that is reached by a resource handle.
    CreatesQueue,
    /// Creates a gradient accumulator.
    CreatesAccumulator,
    /// Writes tensors to a checkpoint; the values follow the prefix, the names and the slices.
    Saves,
    /// Reads tensors from a checkpoint.
    Restores,
    /// Adds its second input to the variable that its first input reaches.
    AddsToVariable,
    /// Reports whether a variable has a value.
    ChecksInitialized,
}

impl OpFacts {
    /// The facts of an op that only computes its outputs from its inputs.
    pub const PLAIN: OpFacts = OpFacts {
        control_flow: None,
        function_call: None,
        forwards: Forwards::Nothing,
        static_value: StaticValue::Unknown,
        variable: None,
        is_placeholder: false,
        reads_shape_only: false,
        runs_unread: false,
        holds_shared_state: false,
        outputs_stay: false,
        state_role: None,
    };

    /// The facts of a control flow primitive.
    pub const fn of_control_flow(role: ControlFlow) -> OpFacts {
        OpFacts { control_flow: Some(role), ..OpFacts::PLAIN }
    }

    /// True if the op has this role in control flow.
    pub fn is(&self, role: ControlFlow) -> bool {
        self.control_flow == Some(role)
    }

    /// True if the value depends on more than the inputs: on the branch that is taken, or on what the client feeds.
    pub fn depends_on_step(&self) -> bool {
        self.control_flow.is_some() || self.is_placeholder
    }

    /// The index of the input that an output is equal to, if there is one. Control flow primitives pass on their first
    /// input; a Merge has several, which all stand for the same value.
    pub fn forwarded_input(&self, output: usize) -> Option<usize> {
        use ControlFlow::{Enter, Exit, Merge, NextIteration, Switch};
        match (self.control_flow, self.forwards) {
            (Some(Switch | Merge | Enter | Exit | NextIteration), _) | (None, Forwards::First) => Some(0),
            (None, Forwards::Each) => Some(output),
            _ => None,
        }
    }
}

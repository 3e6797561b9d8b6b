//! A compiled graph: dense arrays with kernels. Names are kept for messages only.

use crate::frame::{Iteration, State};
use op::{Kernel, Transfer};
use parking_lot::Mutex;
use std::sync::Arc;

/// A compiled graph. Steps share it and never change it.
pub struct Program {
    pub(crate) nodes: Vec<Node>,
    /// Consumers of data outputs; a node's outputs own consecutive ranges.
    pub(crate) edges: Vec<OutEdge>,
    /// The slots of the inputs, in the frame of the consumer; the inputs of a node are consecutive.
    pub(crate) input_slots: Vec<u32>,
    /// Consumers of control outputs.
    pub(crate) control_edges: Vec<u32>,
    pub(crate) frames: Vec<FrameInfo>,
    /// How many results, if this is a function's body.
    pub(crate) results: usize,
    /// Arrays of ended runs, which the next run reuses.
    pub(crate) spare: Mutex<Vec<Iteration>>,
}

/// A node of a program.
pub(crate) struct Node {
    pub name: Arc<str>,
    pub op: Arc<str>,
    pub device: Arc<str>,
    pub kernel: Arc<Kernel>,
    /// The static frame it runs in.
    pub frame: u32,
    /// Its index among the nodes of its frame.
    pub local: u32,
    /// Where its inputs begin in `input_slots`, and how many there are.
    pub first_input: u32,
    pub inputs: u32,
    /// The slot of its first output, in the frame of the consumers; the others follow.
    pub first_value: u32,
    /// Bit i is set if the op takes input i as a reference; inputs beyond the first 64 never are.
    pub refs: u64,
    pub may_be_uninitialized: bool,
    /// Where each output's consumers begin in `edges`; one more entry than there are outputs.
    pub outputs: Vec<u32>,
    pub control_outputs: (u32, u32),
    pub kind: Kind,
    /// Calls a function that TensorFlow would inline: a trace shows only the nodes of the body.
    pub inlined: bool,
    /// Inputs that it receives from other tasks itself, in order.
    pub streamed_inputs: Vec<StreamedInput>,
}

/// An input that a node receives in chunks, instead of the Recv that was removed.
pub(crate) struct StreamedInput {
    /// Its index among the node's inputs.
    pub index: usize,
    pub transfer: Transfer,
    /// The name and op of the Recv, for messages and traces.
    pub name: Arc<str>,
    pub op: Arc<str>,
}

/// How the executor treats a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ordinary,
    Merge,
    Enter,
    Exit,
    NextIteration,
    /// Never dead, even if nodes that it waits for are.
    ControlTrigger,
    /// Runs even if its inputs are dead: Send and Recv transfer the information that a value is dead.
    SeesDead,
}

/// An edge to a consumer's input.
#[derive(Clone, Copy)]
pub(crate) struct OutEdge {
    pub node: u32,
    /// Which of its inputs.
    pub input: u32,
}

/// A loop, or the whole graph.
#[derive(Default)]
pub(crate) struct FrameInfo {
    pub name: String,
    /// The frame around it.
    pub parent: u32,
    /// How many Enter nodes lead into it.
    pub enters: u32,
    pub parallel: usize,
    pub nodes: Vec<u32>,
    /// The number of value slots in an iteration.
    pub values: u32,
    /// Nodes without inputs.
    pub roots: Vec<u32>,
    /// The states of its nodes when an iteration begins.
    pub states: Vec<State>,
}

impl Program {
    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The slots in which a node finds its inputs.
    #[inline]
    pub(crate) fn inputs(&self, node: &Node) -> &[u32] {
        &self.input_slots[node.first_input as usize..(node.first_input + node.inputs) as usize]
    }

    /// True if there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

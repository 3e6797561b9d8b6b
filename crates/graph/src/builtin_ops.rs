//! Names of the ops that the runtime itself adds to graphs, and of those that the wire defines.
//!
//! The crates below `ops` use these constants to create nodes. They do not use them to find out what a node does: the
//! facts of its op say that (see [`crate::OpFacts`]). ARCHITECTURE.md lists these names, and `cargo test -p xtask`
//! compares.

/// Sends a tensor to another task.
pub const SEND: &str = "_Send";
/// Receives a tensor from another task.
pub const RECV: &str = "_Recv";
/// Sends a tensor in host memory.
pub const HOST_SEND: &str = "_HostSend";
/// Receives a tensor into host memory.
pub const HOST_RECV: &str = "_HostRecv";
/// Returns an argument of a function.
pub const ARG: &str = "_Arg";
/// Takes a result of a function.
pub const RETVAL: &str = "_Retval";

/// A constant.
pub const CONST: &str = "Const";
/// A value that the client feeds.
pub const PLACEHOLDER: &str = "Placeholder";
/// Returns its input.
pub const IDENTITY: &str = "Identity";
/// Returns its inputs.
pub const IDENTITY_N: &str = "IdentityN";
/// Does nothing; a node that others wait for.
pub const NO_OP: &str = "NoOp";

/// Passes a value to one of two branches.
pub const SWITCH: &str = "Switch";
/// Passes a value to one of several branches.
pub const SWITCH_N: &str = "_SwitchN";
/// Joins branches.
pub const MERGE: &str = "Merge";
/// Passes a value into a loop.
pub const ENTER: &str = "Enter";
/// Passes a value out of a loop.
pub const EXIT: &str = "Exit";
/// Passes a value to the next iteration.
pub const NEXT_ITERATION: &str = "NextIteration";
/// The condition of a loop.
pub const LOOP_COND: &str = "LoopCond";

/// The gradient of a function, as a function; also the name under which it is called.
pub const SYMBOLIC_GRADIENT: &str = "SymbolicGradient";
/// The dimensions of a tensor.
pub const SHAPE: &str = "Shape";
/// A tensor filled with one value.
pub const FILL: &str = "Fill";
/// Zeros of the shape of a tensor.
pub const ZEROS_LIKE: &str = "ZerosLike";
/// A part of a tensor.
pub const STRIDED_SLICE: &str = "StridedSlice";
/// Converts the element type.
pub const CAST: &str = "Cast";
/// Sums rows by segment.
pub const UNSORTED_SEGMENT_SUM: &str = "UnsortedSegmentSum";
/// The sum of tensors of one shape.
pub const ADD_N: &str = "AddN";
/// Tensors joined along an axis.
pub const CONCAT_V2: &str = "ConcatV2";

/// The operator `+`.
pub const ADD_V2: &str = "AddV2";
/// The operator `-`.
pub const SUB: &str = "Sub";
/// The operator `*`.
pub const MUL: &str = "Mul";
/// The operator `/` of integers.
pub const FLOOR_DIV: &str = "FloorDiv";
/// The operator `/` of other numbers.
pub const REAL_DIV: &str = "RealDiv";
/// The operator `%`.
pub const FLOOR_MOD: &str = "FloorMod";
/// The operator `-` with one operand.
pub const NEG: &str = "Neg";

//! Graphs: nodes, edges, attributes, devices, op signatures, and how they are built, imported and serialised.
//!
//! The crate describes computations and never computes a value. It does not know which ops exist: an
//! [`OpSet`] supplies their signatures, their facts and their shape functions. A [`GraphDef`] is a graph as written on the
//! wire, with names; a [`FlatGraph`] is the same graph with names resolved to numbers; a [`Graph`] is
//! one under construction, to which a [`Scope`] adds nodes.
//!
//! ```
//! use flowgrid_graph::DeviceSpec;
//!
//! let device = DeviceSpec::parse("/job:ps/task:1").unwrap();
//! let scope = DeviceSpec::parse("/job:worker/device:CPU:0").unwrap();
//! assert_eq!(device.or(&scope).to_string(), "/job:ps/task:1/device:CPU:0");
//! ```
#![forbid(unsafe_code)]

mod attr;
mod build;
pub mod builtin_ops;
mod def;
mod device;
mod fingerprint;
mod flat;
mod frames;
mod hash;
mod import;
mod op_facts;
mod op_text;
mod rendezvous_key;
mod signature;
mod substitute;
pub mod wire;

pub use attr::{AttrList, AttrValue, Function, TensorAttr};
pub use build::{
    Fetch, Fetchable, FunctionBuilder, Graph, Node, OpBuilder, OpSet, Output, Scope, ShapeQuery, copied_function,
    op_signature, output_names, to_function,
};
pub use def::{FunctionDef, FunctionLibrary, GraphDef, NodeDef, Versions};
pub use device::DeviceSpec;
pub use fingerprint::function_fingerprint;
pub use flat::{Edge, FlatGraph, FlatNode, LOWERED, NodeId, TensorName};
pub use frames::{Frame, FrameNode, Frames};
pub use hash::hash64;
pub use import::ImportOptions;
pub use op_facts::{ControlFlow, Forwards, FunctionCall, OpFacts, StateRole, StaticValue, VariableKind};
pub use rendezvous_key::{RendezvousKey, RendezvousKeyPrefix};
pub use signature::{Arg, ArgType, AttrDef, AttrKind, Signature, Signatures};

#[cfg(test)]
mod tests;

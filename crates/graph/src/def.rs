//! Serialisable graphs: nodes refer to each other by name, nothing is resolved.

use crate::{AttrValue, Signature};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A graph as a list of nodes and functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphDef {
    /// The nodes, in the order they were written.
    pub nodes: Vec<Arc<NodeDef>>,
    /// Functions the nodes may call.
    pub library: FunctionLibrary,
    /// Versions of the producer.
    pub versions: Versions,
    /// Preserved for later readers, not interpreted.
    pub debug_info: Bytes,
}

/// The description of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeDef {
    /// Unique in its graph.
    pub name: String,
    /// Name of an op or of a function.
    pub op: String,
    /// `node`, `node:1` or `^node`; in functions `arg`, `node:out:1` or `^node`.
    pub inputs: Vec<String>,
    /// Full or partial device name, or empty.
    pub device: String,
    /// Attributes by name.
    pub attrs: BTreeMap<String, AttrValue>,
    /// Original names and full type, as serialised messages; preserved for later readers, not interpreted.
    pub extra: Option<Box<(Bytes, Bytes)>>,
}

/// Versions of the producer of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// Version of the code that wrote the graph.
    pub producer: i32,
    /// Readers older than this must refuse.
    pub min_consumer: i32,
    /// Versions known to be broken.
    pub bad_consumers: Vec<i32>,
}

/// Functions of a graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionLibrary {
    /// By name.
    pub functions: BTreeMap<String, Arc<FunctionDef>>,
    /// Function name to the name of its gradient function.
    pub gradients: BTreeMap<String, String>,
    /// Gradients registered under a name, as serialised messages; preserved for later readers, not interpreted.
    pub registered_gradients: Vec<Bytes>,
}

/// A function: a graph with arguments and results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionDef {
    /// Arguments, results and attributes.
    pub signature: Signature,
    /// Attributes of the function itself.
    pub attrs: BTreeMap<String, AttrValue>,
    /// The body.
    pub nodes: Vec<Arc<NodeDef>>,
    /// The output that each result returns.
    pub ret: BTreeMap<String, String>,
    /// The node that each control output stands for.
    pub control_ret: BTreeMap<String, String>,
    /// Attributes of single arguments.
    pub arg_attrs: BTreeMap<u32, BTreeMap<String, AttrValue>>,
    /// Arguments that are the same resource have the same number.
    pub resource_arg_unique_id: BTreeMap<u32, u32>,
    /// The message the function was read from, preserved for later readers; empty for functions created here.
    pub encoded: Bytes,
}

//! I see names, edges, attributes, devices, signatures; never a computed value.
#![forbid(unsafe_code)]

mod attr;
mod build;
mod def;
mod device;
mod flat;
mod hash;
mod import;
mod op_text;
mod signature;
pub mod wire;

pub use attr::{AttrList, AttrValue, Function, TensorAttr};
pub use build::{Fetch, Fetchable, Graph, Node, OpBuilder, OpSet, Output, Scope, ShapeQuery};
pub use def::{FunctionDef, FunctionLibrary, GraphDef, NodeDef, Versions};
pub use device::DeviceSpec;
pub use flat::{Edge, FlatGraph, FlatNode, NodeId, TensorName};
pub use hash::hash64;
pub use import::ImportOptions;
pub use signature::{Arg, ArgType, AttrDef, AttrKind, Signature, Signatures};

#[cfg(test)]
mod tests;

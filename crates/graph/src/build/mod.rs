//! Building graphs in Rust: scopes, nodes, outputs.

mod fetch;
mod function;
mod graph;
mod node;
mod op_builder;
mod operators;
mod output;
mod scope;

pub use fetch::{Fetch, Fetchable};
pub use function::{FunctionBuilder, copied_function, op_signature, output_names, to_function};
pub use graph::{Graph, OpSet, ShapeQuery};
pub use node::Node;
pub use op_builder::OpBuilder;
pub use output::Output;
pub use scope::Scope;

use crate::{AttrValue, ControlFlow, Forwards, NodeDef, OpFacts, StaticValue, VariableKind};
use tensor::{DType, PartialShape, Tensor};

/// Constants above this size are not propagated while building.
const SMALL: usize = 4096;

/// The static value of a node, if it is small: constants, and shapes of inputs with a known shape.
fn output_constant(
    def: &NodeDef,
    known: StaticValue,
    shapes: &[PartialShape],
    constants: &[Option<Tensor>],
) -> Option<Tensor> {
    match known {
        StaticValue::Attribute => match def.attrs.get("value") {
            Some(AttrValue::Tensor(value)) if value.encoded().elements().is_some_and(|n| n <= SMALL) => {
                value.decode().ok()
            }
            _ => None,
        },
        StaticValue::InputShape => {
            let shape = shapes.first()?.known()?;
            let wide = matches!(def.attrs.get("out_type"), Some(AttrValue::Type(DType::I64)));
            Some(match wide {
                true => Tensor::vector::<i64>(&shape.to_i64()),
                false => Tensor::vector::<i32>(&shape.iter().map(|&d| d as i32).collect::<Vec<_>>()),
            })
        }
        StaticValue::Input => constants.first()?.clone(),
        StaticValue::Unknown => None,
    }
}

/// Type and shape of the variable behind a handle: set by the op that creates the handle, kept by ops that pass it
/// on.
fn output_variable(
    def: &NodeDef,
    facts: OpFacts,
    variables: &[Option<(DType, PartialShape)>],
) -> Option<(DType, PartialShape)> {
    match facts.variable {
        Some(VariableKind::Resource) => match (def.attrs.get("dtype")?, def.attrs.get("shape")?) {
            (AttrValue::Type(dtype), AttrValue::Shape(shape)) => Some((*dtype, shape.clone())),
            _ => None,
        },
        None if facts.forwards == Forwards::First || facts.is(ControlFlow::Enter) => variables.first()?.clone(),
        _ => None,
    }
}

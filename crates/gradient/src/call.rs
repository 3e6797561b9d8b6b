//! Gradients of function calls: a call of the function that is the function's gradient.

use crate::between::trainable;
use crate::nodes::zeros_like;
use graph::{AttrValue, Function, Node, Output};
use op::{Gradient, Grads};
use status::Result;
use tensor::DType;

/// The function that a node calls, if it does nothing else.
pub(crate) fn called(node: &Node) -> Option<Function> {
    let def = node.def();
    match def.op.as_str() {
        "PartitionedCall" | "StatefulPartitionedCall" => match def.attrs.get("f") {
            Some(AttrValue::Func(function)) => Some((**function).clone()),
            _ => None,
        },
        op if node.graph().library().functions.contains_key(op) => {
            Some(Function { name: def.op.clone(), attrs: def.attrs.clone() })
        }
        _ => None,
    }
}

/// Passes gradients through a call: inputs and output gradients go into a `SymbolicGradient`.
pub(crate) fn pass(node: &Node, function: Function, gradients: &[Option<Output>]) -> Result<Grads> {
    let inputs = node.all_inputs();
    let mut args = inputs.clone();
    for (output, gradient) in node.outputs().iter().zip(gradients) {
        args.push(gradient.clone().unwrap_or_else(|| zeros_like(output)));
    }
    let types: Vec<DType> = inputs.iter().map(Output::dtype).collect();
    let call = node.scope().op("SymbolicGradient").inputs(&args).attr("Tout", types).attr("f", function).node();
    let of_input = |(place, input): (usize, &Output)| {
        let differentiable = trainable(input.dtype()) && !matches!(input.dtype(), DType::RESOURCE | DType::VARIANT);
        differentiable.then(|| Gradient::Dense(call.output(place)))
    };
    Ok(inputs.iter().enumerate().map(of_input).collect())
}

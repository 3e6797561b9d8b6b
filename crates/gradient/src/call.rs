//! Gradients of function calls: the gradient of a call is a call of the gradient function.

use crate::between::trainable;
use crate::nodes::zeros_like;
use graph::builtin_ops::SYMBOLIC_GRADIENT;
use graph::{AttrValue, Function, FunctionCall, Node, OpFacts, Output};
use op::{Gradient, Grads};
use status::Result;
use tensor::DType;

/// The function that a node calls, if the node does nothing else.
pub(crate) fn called(node: &Node, facts: OpFacts) -> Option<Function> {
    let def = node.def();
    if node.graph().library().functions.contains_key(&def.op) {
        return Some(Function { name: def.op.clone(), attrs: def.attrs.clone() });
    }
    match (facts.function_call, def.attrs.get("f")) {
        (Some(FunctionCall::Plain), Some(AttrValue::Func(function))) => Some((**function).clone()),
        _ => None,
    }
}

/// Passes gradients through a call. `SymbolicGradient` takes the inputs of the call and the gradients of its outputs,
/// and returns the gradients of the inputs.
pub(crate) fn pass(node: &Node, function: Function, gradients: &[Option<Output>]) -> Result<Grads> {
    let inputs = node.all_inputs();
    let mut args = inputs.clone();
    for (output, gradient) in node.outputs().iter().zip(gradients) {
        args.push(gradient.clone().unwrap_or_else(|| zeros_like(output)));
    }
    let types: Vec<DType> = inputs.iter().map(Output::dtype).collect();
    let call = node.scope().op(SYMBOLIC_GRADIENT).inputs(&args).attr("Tout", types).attr("f", function).node();
    let of_input = |(place, input): (usize, &Output)| {
        let differentiable = trainable(input.dtype()) && !matches!(input.dtype(), DType::RESOURCE | DType::VARIANT);
        differentiable.then(|| Gradient::Dense(call.output(place)))
    };
    Ok(inputs.iter().enumerate().map(of_input).collect())
}

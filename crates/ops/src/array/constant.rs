//! Values that come from the graph itself or from a feed: constants and placeholders.

use graph::{AttrValue, Node, Output, Scope, ShapeQuery};
use op::shapes::{attr_shape, unknown};
use op::{Grad, Grads, Kernel, Op, Setup, grads, source, unary};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Const() -> output: dtype; value: tensor; dtype: type",
        shape: const_shape,
        grad: Grad::Stop,
        kernel: const_kernel,
    },
    Op {
        def: "Placeholder() -> output: dtype; dtype: type; shape: shape = ?",
        shape: attr_shape,
        grad: Grad::Unknown,
        kernel: placeholder_kernel,
    },
    Op {
        def: "PlaceholderV2() -> output: dtype; dtype: type; shape: shape",
        shape: attr_shape,
        grad: Grad::Unknown,
        kernel: placeholder_kernel,
    },
    Op {
        def: "PlaceholderWithDefault(input: dtype) -> output: dtype; dtype: type; shape: shape",
        shape: attr_shape,
        grad: Grad::Rule(pass),
        kernel: with_default_kernel,
    },
];

/// A value known when the graph is built.
pub fn constant(scope: &Scope, value: Tensor) -> Output {
    let dtype = value.dtype();
    scope.op("Const").attr("value", value).attr("dtype", dtype).output()
}

/// A value that is fed in each step.
pub fn placeholder(scope: &Scope, dtype: DType, shape: impl Into<PartialShape>) -> Output {
    let shape: PartialShape = shape.into();
    scope.op("Placeholder").attr("dtype", dtype).attr("shape", shape).output()
}

/// A value that may be fed, and is `input` where it is not.
pub fn placeholder_with_default(input: &Output, shape: impl Into<PartialShape>) -> Output {
    let shape: PartialShape = shape.into();
    input.scope().op("PlaceholderWithDefault").input(input).attr("shape", shape).output()
}

fn pass(_: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![dy.clone()])
}

fn const_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    match query.attr("value")? {
        AttrValue::Tensor(value) => match value.encoded().shape() {
            Some(shape) => Ok(vec![shape.into()]),
            None => unknown(query),
        },
        _ => unknown(query),
    }
}

fn const_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (value, dtype) = (setup.tensor("value")?, setup.dtype("dtype")?);
    if value.dtype() != dtype {
        return Err(invalid!("Type mismatch between value ({}) and dtype ({dtype})", value.dtype()));
    }
    Ok(source(move |_| Ok(value.clone())).free())
}

fn placeholder_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, shape) = (setup.dtype("dtype")?, setup.shape("shape")?);
    let mut message = format!("You must feed a value for placeholder tensor '{}' with dtype {dtype}", setup.name());
    if shape.rank().is_some_and(|rank| rank > 0) {
        message.push_str(&format!(" and shape {shape}"));
    }
    Ok(source(move |_| Err(invalid!("{message}"))).free())
}

fn with_default_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, input| Ok(input)).free())
}

//! Values from the graph itself or from a feed: constants and placeholders.

use graph::{AttrValue, Node, Output, Scope, ShapeQuery, StaticValue, TensorAttr};
use op::shapes::{attr_shape, unknown};
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, grads, source, unary};
use status::{Result, invalid};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tensor::wire::EncodedTensor;
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Const() -> output: dtype; value: tensor; dtype: type",
        shape: const_shape,
        grad: Grad::Stop,
        kernel: const_kernel,
        facts: PLAIN.static_value(StaticValue::Attribute),
    },
    Op {
        def: "HostConst() -> output: dtype; value: tensor; dtype: type",
        shape: const_shape,
        grad: Grad::Unknown,
        kernel: const_kernel,
        facts: PLAIN.static_value(StaticValue::Attribute),
    },
    Op {
        def: "Placeholder() -> output: dtype; dtype: type; shape: shape = ?",
        shape: attr_shape,
        grad: Grad::Unknown,
        kernel: placeholder_kernel,
        facts: PLAIN.placeholder(),
    },
    Op {
        def: "PlaceholderV2() -> output: dtype; dtype: type; shape: shape",
        shape: attr_shape,
        grad: Grad::Unknown,
        kernel: placeholder_kernel,
        facts: PLAIN.removed_in(23, "Placeholder now behaves the same as PlaceholderV2.").placeholder(),
    },
    Op {
        def: "PlaceholderWithDefault(input: dtype) -> output: dtype; dtype: type; shape: shape",
        shape: attr_shape,
        grad: Grad::Rule(pass),
        kernel: with_default_kernel,
        facts: PLAIN.placeholder().passes_gradient(),
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
    let dtype = setup.dtype("dtype")?;
    let found = match setup.attr("value")? {
        AttrValue::Tensor(value) if is_spread(value.encoded()) => {
            let (found, spread) = (value.encoded().dtype(), Spread::new(value.clone()));
            (found, source(move |_| spread.value()).heavy())
        }
        _ => {
            let value = setup.tensor("value")?;
            (value.dtype(), source(move |_| Ok(value.clone())).free())
        }
    };
    match found {
        (found, kernel) if found == dtype => Ok(kernel),
        (found, _) => Err(invalid!("Type mismatch between value ({found}) and dtype ({dtype})")),
    }
}

/// Constants from this size on, of which the graph holds only a few values, are made when they are needed.
const SPREAD_FROM: usize = 1 << 20;

fn is_spread(encoded: &EncodedTensor) -> bool {
    let size = encoded.elements().and_then(|count| count.checked_mul(encoded.dtype().size()));
    size.is_some_and(|size| size >= SPREAD_FROM && encoded.message_len() < size / 16)
}

/// A large constant with few distinct values, such as the initial value of a variable. The first step that reads it
/// gets a tensor of its own, which a variable can keep without a copy, because most such constants are read once. The
/// tensor of the second step is cached for later steps.
pub(crate) struct Spread {
    encoded: TensorAttr,
    asked: AtomicBool,
    kept: OnceLock<Tensor>,
}

impl Spread {
    pub fn new(encoded: TensorAttr) -> Spread {
        Spread { encoded, asked: AtomicBool::new(false), kept: OnceLock::new() }
    }

    pub fn value(&self) -> Result<Tensor> {
        if let Some(value) = self.kept.get() {
            return Ok(value.clone());
        }
        let value = self.encoded.decode()?;
        match self.asked.swap(true, Ordering::Relaxed) {
            true => Ok(self.kept.get_or_init(|| value).clone()),
            false => Ok(value),
        }
    }
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

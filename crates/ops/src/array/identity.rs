//! Ops that return their input and state a fact about it.

use graph::{AttrValue, Forwards, Node, Output, ShapeQuery, StaticValue};
use op::shapes::unchanged;
use op::{Flow, Grad, Grads, Kernel, Op, Outputs, PLAIN, Setup, Value, grads, many, unary};
use status::{Result, invalid};
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Identity(input: T) -> output: T; T: type",
        shape: unchanged,
        grad: Grad::Rule(pass),
        kernel: |_| Ok(Kernel::flow(Flow::Identity)),
        facts: PLAIN.forwards(Forwards::First).static_value(StaticValue::Input).passes_gradient(),
    },
    Op {
        def: "_EagerConst(input: T) -> output: T; T: type",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: |_| Ok(Kernel::flow(Flow::Identity)),
        facts: PLAIN,
    },
    Op {
        def: "IdentityN(input: [T]) -> output: [T]; T: list(type) >= 1",
        shape: each_unchanged,
        grad: Grad::Rules(pass_all),
        kernel: identity_n_kernel,
        facts: PLAIN.forwards(Forwards::Each),
    },
    Op {
        def: "Snapshot(input: T) -> output: T; T: type",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: identity_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StopGradient(input: T) -> output: T; T: type",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: identity_kernel,
        facts: PLAIN.static_value(StaticValue::Input),
    },
    Op {
        def: "PreventGradient(input: T) -> output: T; T: type; message: string = \"\"",
        shape: unchanged,
        grad: Grad::Rule(prevented),
        kernel: identity_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DeepCopy(x: T) -> y: T; T: type; stateful",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: identity_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DebugGradientIdentity(input: T) -> output: T; T: type; uninitialized",
        shape: unchanged,
        grad: Grad::Rule(pass),
        kernel: identity_kernel,
        facts: PLAIN.runs_unread(),
    },
    Op {
        def: "DebugGradientRefIdentity(input: Ref(T)) -> output: Ref(T); T: type; uninitialized",
        shape: unchanged,
        grad: Grad::Rule(pass),
        kernel: ref_identity_kernel,
        facts: PLAIN.runs_unread(),
    },
    Op {
        def: "GuaranteeConst(input: T) -> output: T; T: type; stateful",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: guarantee_const_kernel,
        facts: PLAIN,
    },
    Op {
        def: "EnsureShape(input: T) -> output: T; shape: shape; T: type",
        shape: ensured_shape,
        grad: Grad::Rule(ensure_shape_rule),
        kernel: ensure_shape_kernel,
        facts: PLAIN,
    },
];

/// The same value under another name.
pub fn identity(input: &Output) -> Output {
    input.scope().op("Identity").input(input).output()
}

/// The same values; none is there before all are.
pub fn identity_n(inputs: &[Output]) -> Vec<Output> {
    match inputs.first() {
        Some(first) => first.scope().op("IdentityN").inputs(inputs).node().outputs(),
        None => Vec::new(),
    }
}

/// The same value, through which no gradient passes.
pub fn stop_gradient(input: &Output) -> Output {
    input.scope().op("StopGradient").input(input).output()
}

/// The same value; asking for a gradient through it is an error with this message.
pub fn prevent_gradient(input: &Output, message: &str) -> Output {
    input.scope().op("PreventGradient").input(input).attr("message", message).output()
}

/// The same value; an error when it does not have this shape.
pub fn ensure_shape(input: &Output, shape: impl Into<PartialShape>) -> Output {
    let shape: PartialShape = shape.into();
    input.scope().op("EnsureShape").input(input).attr("shape", shape).output()
}

fn pass(_: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![dy.clone()])
}

fn pass_all(_: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    Ok(dys.iter().map(|dy| op::IntoGradient::into_gradient(dy.clone())).collect())
}

fn prevented(op: &Node, _: &Output) -> Result<Grads> {
    let message = match op.attr("message")? {
        AttrValue::String(message) => String::from_utf8_lossy(&message).into_owned(),
        _ => String::new(),
    };
    Err(status::Error::new(status::Code::Unimplemented, format!("Gradient explicitly disabled. Reason: {message:?}")))
}

fn ensure_shape_rule(op: &Node, dy: &Output) -> Result<Grads> {
    match op.attr("shape")? {
        AttrValue::Shape(shape) => Ok(grads![ensure_shape(dy, shape)]),
        _ => Ok(grads![dy.clone()]),
    }
}

fn each_unchanged(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(query.inputs.to_vec())
}

fn ensured_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    match query.attr("shape")? {
        AttrValue::Shape(shape) => Ok(vec![shape.merge(&query.inputs[0])?]),
        _ => unchanged(query),
    }
}

fn identity_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, input| Ok(input)).free())
}

fn identity_n_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (found, wanted) = (setup.input_types().len(), setup.output_types().len());
    if found != wanted {
        return Err(invalid!("IdentityN has {found} inputs and {wanted} outputs"));
    }
    Ok(many(|_, mut inputs| Ok(inputs.tensors_from(0)?.into_iter().map(Value::Tensor).collect())).free())
}

fn ref_identity_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| Ok(Outputs::from_iter([inputs.take(0)?]))).free())
}

fn guarantee_const_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if setup.input_types().first().is_some_and(|dtype| dtype.base() == tensor::DType::RESOURCE) {
        return Err(invalid!("Input tensor cannot be a resource variable handle in kernel_type GuaranteeConst"));
    }
    identity_kernel(setup)
}

fn ensure_shape_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let wanted = setup.shape("shape")?;
    let source = setup.def().inputs.first().cloned().unwrap_or_default();
    let check = move |input: Tensor| match wanted.accepts(input.shape()) {
        true => Ok(input),
        false => {
            Err(invalid!("Shape of tensor {source} {} is not compatible with expected shape {wanted}.", input.shape()))
        }
    };
    Ok(unary(move |_, input| check(input)).free())
}

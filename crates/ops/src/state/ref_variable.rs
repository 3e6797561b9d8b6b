//! Reference variables.

use super::await_value::{await_variable, is_waiting};
use crate::dispatch::undeclared;
use graph::{Output, Scope, StateRole, VariableKind};
use op::shapes::{attr_shape, scalar, unchanged};
use op::{Ctx, Grad, Kernel, Op, PLAIN, ReferenceVariable, Setup, Value, Variable, later, many, outputs};
use status::{Result, invalid, not_found};
use std::sync::Arc;
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Variable() -> ref: Ref(dtype); shape: shape; dtype: type; container: string = \"\"; \
              shared_name: string = \"\"; stateful",
        shape: attr_shape,
        grad: Grad::Stop,
        kernel: variable_kernel,
        facts: PLAIN.variable(VariableKind::Reference),
    },
    Op {
        def: "VariableV2() -> ref: Ref(dtype); shape: shape; dtype: type; container: string = \"\"; \
              shared_name: string = \"\"; stateful",
        shape: attr_shape,
        grad: Grad::Stop,
        kernel: variable_kernel,
        facts: PLAIN.variable(VariableKind::Reference),
    },
    Op {
        def: "TemporaryVariable() -> ref: Ref(dtype); shape: shape; dtype: type; var_name: string = \"\"; stateful",
        shape: attr_shape,
        grad: Grad::Stop,
        kernel: temporary_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DestroyTemporaryVariable(ref: Ref(T)) -> value: T; T: type; var_name: string",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: destroy_temporary_kernel,
        facts: PLAIN,
    },
    Op {
        def: "IsVariableInitialized(ref: Ref(dtype)) -> is_initialized: bool; dtype: type; uninitialized",
        shape: scalar,
        grad: Grad::Stop,
        kernel: is_initialized_kernel,
        facts: PLAIN.state_role(StateRole::ChecksInitialized),
    },
];

/// A variable of this shape and type, called `name`; it has no value until one is assigned.
pub fn variable(scope: &Scope, name: &str, dtype: DType, shape: &PartialShape) -> Output {
    scope.op("VariableV2").named(name).attr("dtype", dtype).attr("shape", shape).output()
}

/// A variable that lives until `destroy_temporary_variable` takes its value, within one step.
pub fn temporary_variable(scope: &Scope, dtype: DType, shape: &PartialShape, var_name: &str) -> Output {
    scope.op("TemporaryVariable").attr("dtype", dtype).attr("shape", shape).attr("var_name", var_name).output()
}

/// The last value of a temporary variable; it ends here.
pub fn destroy_temporary_variable(variable: &Output, var_name: &str) -> Output {
    variable.scope().op("DestroyTemporaryVariable").input(variable).attr("var_name", var_name).output()
}

/// Whether a variable has a value.
pub fn is_variable_initialized(variable: &Output) -> Output {
    variable.scope().op("IsVariableInitialized").input(variable).output()
}

fn variable_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, shape) = (setup.dtype("dtype")?, shape_of(setup)?);
    let (container, shared_name) = (setup.string("container")?, setup.string("shared_name")?);
    let name = if shared_name.is_empty() { setup.name().to_string() } else { shared_name };
    let node = setup.name().to_string();
    let resources = setup.resources().clone();
    Ok(many(move |_, _| {
        let make = || Ok(ReferenceVariable(Arc::new(Variable::new(&node, dtype).of_shape(shape.clone()))));
        let variable = resources.get_or_create(&container, &name, make)?;
        resources.observe_variable(true, &container, &name, &variable.0);
        if variable.0.dtype() != dtype {
            return Err(undeclared(&node, variable.0.dtype().to_ref(), dtype.to_ref()));
        }
        Ok(outputs![Value::Ref(variable.0.clone())])
    })
    .free())
}

/// The shape attribute; without a rank it counts as that of one number.
fn shape_of(setup: &Setup<'_>) -> Result<Shape> {
    let shape = setup.shape("shape")?;
    match shape.dims() {
        Some(dims) => Shape::checked(dims),
        None => Ok(Shape::scalar()),
    }
}

/// Registers a live temporary variable among the resources of a step; its users have the reference.
struct Temporary;

/// Iterations of a loop run concurrently, so each has temporaries of its own.
fn temporary_name(ctx: &Ctx<'_>, name: &str) -> String {
    format!("{name}/frame:{}/iter:{}", ctx.frame, ctx.iteration)
}

fn temporary_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, shape) = (setup.dtype("dtype")?, shape_of(setup)?);
    let name = match setup.string("var_name")? {
        name if name.is_empty() => setup.name().to_string(),
        name => name,
    };
    Ok(many(move |ctx, _| {
        let variable = Arc::new(Variable::new(&name, dtype).of_shape(shape.clone()));
        variable.assign(Tensor::zeros_of(dtype, &shape)?);
        ctx.step_resources().create("", &temporary_name(ctx, &name), Arc::new(Temporary))?;
        Ok(outputs![Value::Ref(variable)])
    }))
}

fn destroy_temporary_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let name = setup.string("var_name")?;
    if name.is_empty() {
        return Err(invalid!("Missing var_name attribute"));
    }
    Ok(many(move |ctx, mut inputs| {
        let variable = inputs.variable(0)?;
        let name = temporary_name(ctx, &name);
        if !ctx.step_resources().remove::<Temporary>("", &name) {
            return Err(not_found!("Resource {}/{name} does not exist.", ctx.step_resources().container("")));
        }
        let value = variable.lock().take();
        Ok(outputs![value.ok_or_else(|| variable.uninitialized())?])
    }))
}

fn is_initialized_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if is_waiting(setup) {
        return Ok(later(|ctx, mut inputs, done| match inputs.variable(0) {
            Ok(variable) => await_variable(ctx, &variable, done),
            Err(error) => done(Err(error)),
        }));
    }
    Ok(many(|_, mut inputs| Ok(outputs![Tensor::scalar(inputs.variable(0)?.is_initialized())])).free())
}

//! Handles of resource variables, and queries that do not read the value.

use super::await_value::{await_named, is_waiting};
use graph::{AttrValue, Output, Scope, ShapeQuery, StateRole, VariableKind};
use op::shapes::{none, scalar};
use op::{Grad, Home, Kernel, Op, PLAIN, Setup, Variable, handle_of, later, many, outputs, source, unary};
use status::{Code, Result, invalid};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "VarHandleOp() -> resource: resource; container: string = \"\"; shared_name: string = \"\"; \
              debug_name: string = \"\"; dtype: type; shape: shape; allowed_devices: list(string) = []; stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: handle_kernel,
        facts: PLAIN.variable(VariableKind::Resource),
    },
    Op {
        def: "_VarHandlesOp() -> resources: N * resource; containers: list(string); shared_names: list(string); \
              N: int >= 0; dtypes: list(type); shapes: list(shape); stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: handles_kernel,
        facts: PLAIN,
    },
    Op {
        def: "VarIsInitializedOp(resource: resource) -> is_initialized: bool; stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: is_initialized_kernel,
        facts: PLAIN.state_role(StateRole::ChecksInitialized),
    },
    Op {
        def: "VariableShape(input: resource) -> output: out_type; out_type: {int32, int64} = int32; stateful",
        shape: shape_vector,
        grad: Grad::Stop,
        kernel: shape_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DestroyResourceOp(resource: resource); ignore_lookup_error: bool = true; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: destroy_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DisableCopyOnRead(resource: resource); stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: disable_copy_on_read_kernel,
        facts: PLAIN,
    },
];

/// The shared name that requests an anonymous variable.
const ANONYMOUS: &str = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

/// The handle of the variable called `name`; it has no value until one is assigned.
pub fn var_handle(scope: &Scope, name: &str, dtype: DType, shape: &PartialShape) -> Output {
    let op = scope.op("VarHandleOp").named(name).attr("dtype", dtype).attr("shape", shape);
    op.attr("shared_name", format!("{}{name}", scope.prefix())).output()
}

/// Whether the variable behind a handle has a value.
pub fn var_is_initialized(handle: &Output) -> Output {
    handle.scope().op("VarIsInitializedOp").input(handle).output()
}

/// The shape of the variable behind a handle, as integers of type `dtype`.
pub fn variable_shape(handle: &Output, dtype: DType) -> Output {
    handle.scope().op("VariableShape").input(handle).attr("out_type", dtype).output()
}

fn shape_vector(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let shape = query.variables.first().and_then(Option::as_ref).map(|(_, shape)| shape);
    Ok(vec![match shape.and_then(PartialShape::rank) {
        Some(rank) => PartialShape::new(&[rank as i64]),
        None => PartialShape::of_rank(1),
    }])
}

fn handle_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (container, name) = (setup.string("container")?, setup.string("shared_name")?);
    let values = vec![(setup.dtype("dtype")?, setup.shape("shape")?)];
    let home = Home::of(setup);
    if name == ANONYMOUS {
        let debug_name = setup.string("debug_name")?;
        return Ok(source(move |_| anonymous(&home, &debug_name, values.clone())).free());
    }
    let handle = home.handle::<Variable>(&container, &name, values);
    let tensor = Tensor::from_handles(Shape::scalar(), vec![handle])?;
    Ok(source(move |_| Ok(tensor.clone())).free())
}

/// A new variable, found only through the handle returned.
fn anonymous(home: &Home, debug_name: &str, values: Vec<(DType, PartialShape)>) -> Result<Tensor> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
    let dtype = values.first().map_or(DType::INVALID, |value| value.0);
    let handle = home.handle::<Variable>(op::ANONYMOUS, &name, values);
    home.resources().create(op::ANONYMOUS, &name, Arc::new(Variable::new(debug_name, dtype)))?;
    Tensor::from_handles(Shape::scalar(), vec![handle])
}

fn handles_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    let text = |bytes: &tensor::Bytes| String::from_utf8_lossy(bytes).into_owned();
    let (containers, names) = (setup.list("containers")?, setup.list("shared_names")?);
    let (types, shapes) = (setup.list("dtypes")?, setup.list("shapes")?);
    let count = usize::try_from(setup.int("N")?).unwrap_or(0);
    let mut tensors = Vec::new();
    for i in 0..count {
        let parts = (containers.strings.get(i), names.strings.get(i), types.types.get(i), shapes.shapes.get(i));
        let (Some(container), Some(name), Some(&dtype), Some(shape)) = parts else {
            return Err(invalid!("_VarHandlesOp of {count} handles has too short a list"));
        };
        let handle = home.handle::<Variable>(&text(container), &text(name), vec![(dtype, shape.clone())]);
        tensors.push(Tensor::from_handles(Shape::scalar(), vec![handle])?);
    }
    Ok(many(move |_, _| Ok(tensors.iter().cloned().map(Into::into).collect())).free())
}

fn is_initialized_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    if is_waiting(setup) {
        return Ok(later(move |ctx, mut inputs, done| {
            match inputs.tensor(0).and_then(|handle| handle_of(&handle).cloned()) {
                Ok(handle) => await_named(ctx, &home, &handle, done),
                Err(error) => done(Err(error)),
            }
        }));
    }
    Ok(unary(move |_, handle| {
        let variable = home.find::<Variable>(handle_of(&handle)?);
        Ok(Tensor::scalar(variable.is_ok_and(|variable| variable.is_initialized())))
    })
    .free())
}

fn shape_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    let wide = matches!(setup.attr("out_type")?, AttrValue::Type(DType::I64));
    Ok(unary(move |_, handle| {
        let variable = home.find::<Variable>(handle_of(&handle)?)?;
        let shape = variable.lock().as_ref().map_or(variable.declared_shape().clone(), |value| value.shape().clone());
        if wide {
            return Ok(Tensor::vector::<i64>(&shape.to_i64()));
        }
        let dims: Result<Vec<i32>> = shape.iter().map(|&dim| narrow(dim, &shape)).collect();
        Ok(Tensor::vector(&dims?))
    })
    .free())
}

fn narrow(dim: usize, shape: &Shape) -> Result<i32> {
    i32::try_from(dim).map_err(|_| invalid!("Shape output type is 32-bit but a dimension of {shape} is {dim}"))
}

fn destroy_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    let ignore_lookup_error = setup.bool("ignore_lookup_error")?;
    Ok(many(move |_, mut inputs| match home.destroy(handle_of(&inputs.tensor(0)?)?) {
        Err(error) if !(ignore_lookup_error && error.code == Code::NotFound) => Err(error),
        _ => Ok(outputs![]),
    }))
}

/// Reads never copy here, so there is nothing to disable. It only checks that the variable exists.
fn disable_copy_on_read_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |_, mut inputs| {
        super::read_variable::find(&home, handle_of(&inputs.tensor(0)?)?)?;
        Ok(outputs![])
    })
    .free())
}

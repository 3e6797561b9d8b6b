//! Reads resource variables; every read is a snapshot.

use graph::{Node, Output, ShapeQuery};
use op::{Grad, Grads, Home, Kernel, Op, PLAIN, Setup, Variable, grads, handle_of, many, unary};
use status::{Result, failed_precondition, invalid};
use std::sync::Arc;
use tensor::{DType, PartialShape, ResourceHandle, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ReadVariableOp(resource: resource) -> value: dtype; dtype: type; stateful",
        shape: read_shape,
        grad: Grad::Rule(read_rule),
        kernel: read_kernel,
        facts: PLAIN.passes_gradient(),
    },
    Op {
        def: "_ReadVariablesOp(resources: N * resource) -> values: [dtypes]; N: int >= 0; dtypes: list(type) >= 1; \
              stateful",
        shape: read_shapes,
        grad: Grad::Unknown,
        kernel: read_many_kernel,
        facts: PLAIN,
    },
];

/// The value of the variable behind a handle.
pub fn read_variable(handle: &Output, dtype: DType) -> Output {
    handle.scope().op("ReadVariableOp").input(handle).attr("dtype", dtype).output()
}

/// The gradient of a value is the gradient of the variable it was read from.
fn read_rule(_: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![dy.clone()])
}

fn read_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some((held, shape)) = query.variables.first().and_then(Option::as_ref) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    match query.attr("dtype")? {
        graph::AttrValue::Type(dtype) if dtype != held => {
            Err(invalid!("Trying to read variable with wrong dtype. Expected {held} got {dtype}"))
        }
        _ => Ok(vec![shape.clone()]),
    }
}

fn read_shapes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let shape = |variable: &Option<(DType, PartialShape)>| match variable {
        Some((_, shape)) => shape.clone(),
        None => PartialShape::unknown(),
    };
    Ok(query.variables.iter().map(shape).collect())
}

/// The variable a handle names; if there is none, the error that readers expect.
pub(crate) fn find(home: &Home, handle: &ResourceHandle) -> Result<Arc<Variable>> {
    home.find(handle).map_err(|error| {
        failed_precondition!(
            "Could not find variable {}. This could mean that the variable has been deleted. In TF1, it can also mean \
             the variable is uninitialized. Debug info: container={}, status error message={}",
            handle.name,
            handle.container,
            error.message
        )
    })
}

fn read_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, dtype) = (Home::of(setup), setup.dtype("dtype")?);
    Ok(unary(move |_, handle| {
        let variable = find(&home, handle_of(&handle)?)?;
        let value = variable.read()?;
        if value.dtype() != dtype {
            return Err(invalid!("Trying to read variable with wrong dtype. Expected {dtype} got {}", value.dtype()));
        }
        Ok(value)
    })
    .free())
}

fn read_many_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, types) = (Home::of(setup), setup.types("dtypes")?);
    let count = setup.int("N")?;
    if count != types.len() as i64 {
        return Err(invalid!("Mismatched number of arguments to ReadVariablesOp ({count} vs. {})", types.len()));
    }
    Ok(many(move |_, mut inputs| {
        let handles = inputs.tensors(0, types.len())?;
        let variables: Result<Vec<_>> = handles.iter().map(|handle| optional(&home, handle)).collect();
        let variables = variables?;
        let missing: Vec<&str> =
            variables.iter().filter(|(_, found)| found.is_none()).map(|(h, _)| h.as_str()).collect();
        if !missing.is_empty() {
            return Err(failed_precondition!(
                "In ReadVariablesOp the following variables were found uninitialized: {}",
                missing.join(", ")
            ));
        }
        let values = variables.iter().zip(&handles).zip(&types);
        values.map(|(((_, variable), handle), &dtype)| read_one(variable, handle, dtype).map(Into::into)).collect()
    })
    .free())
}

/// The name in a handle, and the variable if there is one.
fn optional(home: &Home, handle: &Tensor) -> Result<(String, Option<Arc<Variable>>)> {
    let handle = handle_of(handle)?;
    match home.find(handle) {
        Err(error) if error.code != status::Code::NotFound => Err(error),
        found => Ok((handle.name.clone(), found.ok())),
    }
}

fn read_one(variable: &Option<Arc<Variable>>, handle: &Tensor, dtype: DType) -> Result<Tensor> {
    let handle = handle_of(handle)?;
    let variable = variable.as_ref().ok_or_else(|| failed_precondition!("variable {} is gone", handle.name))?;
    let value = variable.read()?;
    if value.dtype() != dtype {
        return Err(invalid!(
            "Trying to read variable {} from Container: {} with wrong dtype. Expected {dtype} got {}",
            handle.name,
            handle.container,
            value.dtype()
        ));
    }
    Ok(value)
}

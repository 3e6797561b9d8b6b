//! Assigns to resource variables.

use super::assign::{Step, change_of};
use graph::{Node, Output, ShapeQuery, StateRole};
use op::{Grad, Home, Kernel, Op, PLAIN, Setup, Variable, handle_of, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "AssignVariableOp(resource: resource, value: dtype); dtype: type; validate_shape: bool = false; stateful",
        shape: fits,
        grad: Grad::Stop,
        kernel: assign_kernel,
        facts: PLAIN,
    },
    Op {
        def: "AssignAddVariableOp(resource: resource, value: dtype); dtype: type; stateful",
        shape: fits,
        grad: Grad::Stop,
        kernel: |setup| update_kernel(setup, Step::Add),
        facts: PLAIN.state_role(StateRole::AddsToVariable),
    },
    Op {
        def: "AssignSubVariableOp(resource: resource, value: dtype); dtype: type; stateful",
        shape: fits,
        grad: Grad::Stop,
        kernel: |setup| update_kernel(setup, Step::Sub),
        facts: PLAIN,
    },
];

/// Assigns a value to the variable behind a handle.
pub fn assign_variable(handle: &Output, value: &Output) -> Node {
    handle.scope().op("AssignVariableOp").input(handle).input(value).node()
}

/// Adds to the variable behind a handle.
pub fn assign_add_variable(handle: &Output, value: &Output) -> Node {
    handle.scope().op("AssignAddVariableOp").input(handle).input(value).node()
}

/// Subtracts from the variable behind a handle.
pub fn assign_sub_variable(handle: &Output, value: &Output) -> Node {
    handle.scope().op("AssignSubVariableOp").input(handle).input(value).node()
}

/// The value is such as the variable can hold.
fn fits(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    if let Some((held, shape)) = query.variables.first().and_then(Option::as_ref) {
        match query.attr("dtype")? {
            graph::AttrValue::Type(dtype) if dtype != held => {
                return Err(invalid!(
                    "Trying to initialize handle for variable with wrong dtype. Expected {held} got {dtype}"
                ));
            }
            _ => shape.merge(&query.inputs[1])?,
        };
    }
    Ok(Vec::new())
}

fn assign_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, validate_shape) = (Home::of(setup), setup.bool("validate_shape")?);
    Ok(many(move |_, mut inputs| {
        let (handle, value) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let handle = handle_of(&handle)?;
        let make = || Ok(Variable::new(&handle.name, value.dtype()));
        let variable = home.find_or_create(handle, make)?;
        home.resources_of(handle)?.observe_variable(false, &handle.container, &handle.name, &variable);
        store(&variable, value, validate_shape)?;
        Ok(outputs![])
    })
    .free())
}

fn store(variable: &Variable, value: Tensor, validate_shape: bool) -> Result<()> {
    if variable.dtype() != value.dtype() {
        return Err(invalid!(
            "Trying to assign variable with wrong dtype. Expected {} got {}",
            variable.dtype(),
            value.dtype()
        ));
    }
    let mut place = variable.lock();
    match place.as_ref() {
        Some(old) if validate_shape && old.shape() != value.shape() => {
            return Err(invalid!(
                "Trying to assign to variable with tensor with wrong shape. Expected {} got {}",
                old.shape(),
                value.shape()
            ));
        }
        _ => {}
    }
    let replaced = place.replace(value);
    drop(place);
    drop(replaced); // outside the lock: freeing a large value takes time
    Ok(())
}

fn update_kernel(setup: &Setup<'_>, step: Step) -> Result<Kernel> {
    let change = change_of(setup, setup.dtype("dtype")?, step)?;
    let home = Home::of(setup);
    Ok(many(move |ctx, mut inputs| {
        let (handle, by) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let variable = home.find::<Variable>(handle_of(&handle)?)?;
        variable.update(|value| {
            if value.shape() != by.shape() {
                return Err(invalid!(
                    "Cannot update variable with shape {} using a Tensor with shape {}, shapes must be equal.",
                    value.shape(),
                    by.shape()
                ));
            }
            if value.dtype() != by.dtype() {
                return Err(invalid!("DType of variable handle and value does not match."));
            }
            change(ctx, value, &by)
        })?;
        Ok(outputs![])
    }))
}

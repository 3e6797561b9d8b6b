//! Assigns to reference variables.

use super::target::Target;
use graph::{AttrValue, Output, ShapeQuery, StateRole};
use math::elementwise::{cost, zip_in_place_left};
use math::function::Number;
use op::shapes::merged;
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, many};
use status::{Result, invalid};
use tensor::{DType, Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Assign(ref: Ref(T), value: T) -> output_ref: Ref(T); T: type; validate_shape: bool = true; \
              use_locking: bool = true; uninitialized",
        shape: assigned,
        grad: Grad::Stop,
        kernel: assign_kernel,
        facts: PLAIN,
    },
    Op {
        def: "AssignAdd(ref: Ref(T), value: T) -> output_ref: Ref(T); T: numbertype; use_locking: bool = false",
        shape: merged,
        grad: Grad::Stop,
        kernel: |setup| update_kernel(setup, Step::Add),
        facts: PLAIN.state_role(StateRole::AddsToVariable),
    },
    Op {
        def: "AssignSub(ref: Ref(T), value: T) -> output_ref: Ref(T); T: numbertype; use_locking: bool = false",
        shape: merged,
        grad: Grad::Stop,
        kernel: |setup| update_kernel(setup, Step::Sub),
        facts: PLAIN,
    },
];

/// Assigns a value to a variable, and returns the reference.
pub fn assign(variable: &Output, value: &Output) -> Output {
    variable.scope().op("Assign").input(variable).input(value).output()
}

/// As `assign`, for a value of any shape.
pub fn assign_any_shape(variable: &Output, value: &Output) -> Output {
    variable.scope().op("Assign").input(variable).input(value).attr("validate_shape", false).output()
}

/// Adds to a variable; passes the reference on.
pub fn assign_add(variable: &Output, value: &Output) -> Output {
    variable.scope().op("AssignAdd").input(variable).input(value).output()
}

/// Subtracts from a variable; passes the reference on.
pub fn assign_sub(variable: &Output, value: &Output) -> Output {
    variable.scope().op("AssignSub").input(variable).input(value).output()
}

fn assigned(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    match query.attr("validate_shape")? {
        AttrValue::Bool(true) => merged(query),
        _ => Ok(vec![query.inputs[1].clone()]),
    }
}

fn assign_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let validate_shape = setup.bool("validate_shape")?;
    Ok(many(move |_, mut inputs| {
        let (variable, value) = (inputs.variable(0)?, inputs.tensor(1)?);
        if variable.dtype() != value.dtype() {
            return Err(invalid!("Assign of {} to variable of type {}", value.dtype(), variable.dtype()));
        }
        let mut place = variable.lock();
        let old = place.as_ref().map_or(variable.declared_shape(), Tensor::shape);
        if validate_shape && old != value.shape() {
            return Err(invalid!(
                "Assign requires shapes of both tensors to match. lhs shape= {old} rhs shape= {}",
                value.shape()
            ));
        }
        let replaced = place.replace(value);
        drop(place);
        drop(replaced); // outside the lock: freeing a large value takes time
        Ok(Target::Ref.outputs(variable))
    })
    .free())
}

/// How an assignment combines the old and the new value.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Step {
    Add,
    Sub,
}

/// Changes a value by another of the same shape.
pub(crate) type Change = fn(&Ctx<'_>, &mut Tensor, &Tensor) -> Result<()>;

/// The function that does `step` on elements of this type.
pub(crate) fn change_of(setup: &Setup<'_>, dtype: DType, step: Step) -> Result<Change> {
    for_numbers!(setup, dtype, T => Ok(match step {
        Step::Add => (|ctx, value, by| change::<T>(ctx, value, by, T::add)) as Change,
        Step::Sub => |ctx, value, by| change::<T>(ctx, value, by, T::sub),
    }))
}

fn change<T: Element + Number>(
    ctx: &Ctx<'_>,
    value: &mut Tensor,
    by: &Tensor,
    f: impl Fn(T, T) -> T + Copy + Send + Sync,
) -> Result<()> {
    zip_in_place_left(ctx.pool(), cost::SIMPLE, value.values_mut::<T>()?, by.values::<T>()?, f);
    Ok(())
}

fn update_kernel(setup: &Setup<'_>, step: Step) -> Result<Kernel> {
    let change = change_of(setup, setup.dtype("T")?, step)?;
    Ok(many(move |ctx, mut inputs| {
        let (variable, by) = (inputs.variable(0)?, inputs.tensor(1)?);
        variable.update(|value| {
            if value.shape() != by.shape() {
                return Err(invalid!("Parameters and update must be the same size"));
            }
            change(ctx, value, &by)
        })?;
        Ok(Target::Ref.outputs(variable))
    }))
}

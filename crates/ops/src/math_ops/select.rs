//! Select and SelectV2: choose between two tensors, element by element.

use super::broadcast_grad::sum_to_shape_of;
use super::kernels::broadcast_shape;
use super::strings::places;
use graph::{Node, Output};
use math::elementwise::{self, Broadcast, cost};
use op::shapes::broadcast_shapes;
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{Complex64, DType, Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Select(condition: bool, t: T, e: T) -> output: T; T: type",
        shape: select_shape,
        grad: Grad::Rule(select_rule),
        kernel: |setup| select_kernel(setup, Meets::Alike),
        facts: PLAIN,
    },
    Op {
        def: "SelectV2(condition: bool, t: T, e: T) -> output: T; T: type",
        shape: select_v2_shape,
        grad: Grad::Rule(select_v2_rule),
        kernel: |setup| select_kernel(setup, Meets::Broadcast),
        facts: PLAIN,
    },
];

/// `t` where `condition` holds, else `e`; both of one shape, which `condition` has too, or the first axis of it.
pub fn select(condition: &Output, t: &Output, e: &Output) -> Output {
    condition.scope().op("Select").input(condition).input(t).input(e).output()
}

/// `t` where `condition` holds, else `e`, all three broadcast.
pub fn select_v2(condition: &Output, t: &Output, e: &Output) -> Output {
    condition.scope().op("SelectV2").input(condition).input(t).input(e).output()
}

fn select_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[1].merge(&query.inputs[2])?])
}

fn select_v2_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let both = broadcast_shapes(&query.inputs[1], &query.inputs[2])?;
    Ok(vec![broadcast_shapes(&query.inputs[0], &both)?])
}

fn select_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let condition = op.input(0);
    let zeros = op.scope().op("ZerosLike").input(&op.input(1)).output();
    Ok(grads![NoGradient, select(&condition, dy, &zeros), select(&condition, &zeros, dy)])
}

fn select_v2_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [condition, t, e] = op.inputs()?;
    let (whole, zero) = (op.output(0), dy.like(0.0));
    let dt = sum_to_shape_of(select_v2(&condition, dy, &zero), &t, &whole);
    let de = sum_to_shape_of(select_v2(&condition, &zero, dy), &e, &whole);
    Ok(grads![NoGradient, dt, de])
}

/// How the three inputs meet.
#[derive(Clone, Copy)]
enum Meets {
    Alike,
    Broadcast,
}

fn select_kernel(setup: &Setup<'_>, meets: Meets) -> Result<Kernel> {
    let name = setup.name().to_string();
    Ok(many(move |ctx, inputs| run_select(ctx, meets, &name, inputs)))
}

fn run_select(ctx: &Ctx<'_>, meets: Meets, name: &str, mut inputs: Inputs) -> Result<Outputs> {
    let (condition, t, e) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let condition = match meets {
        Meets::Alike => condition_of(condition, &t, &e, name)?,
        Meets::Broadcast => condition,
    };
    // A single truth value chooses a whole tensor.
    if condition.elements() == 1 && t.shape() == e.shape() && condition.shape().rank() <= t.shape().rank() {
        return Ok(outputs![if condition.to_scalar::<bool>()? { t } else { e }]);
    }
    Ok(outputs![choose(ctx, &condition, &t, &e)?])
}

/// The condition of a `Select`, in a shape that broadcasts to that of its tensors.
fn condition_of(condition: Tensor, t: &Tensor, e: &Tensor, name: &str) -> Result<Tensor> {
    let different = || {
        let (t, e) = (t.shape(), e.shape());
        invalid!("'then' and 'else' must have the same size.  but received: {t} vs. {e}")
    };
    let (shape, rank) = (condition.shape(), t.shape().rank());
    match shape.rank() {
        0 if t.shape() != e.shape() => Err(different()),
        0 => Ok(condition),
        1 if rank != 1 => {
            let batches = condition.elements();
            match t.shape().first() {
                None => Err(invalid!("'then' must be at least a vector, but saw shape: {}", t.shape())),
                Some(&first) if first != batches => Err(invalid!(
                    "Number of batches of 'then' must match size of 'cond', but saw: {first} vs. {batches}"
                )),
                Some(_) if t.shape() != e.shape() => Err(different()),
                Some(_) => {
                    let mut column = vec![1; rank];
                    column[0] = batches;
                    condition.reshaped(column)
                }
            }
        }
        _ => {
            let other = [t, e].into_iter().enumerate().find(|(_, tensor)| tensor.shape() != shape);
            match other {
                None => Ok(condition),
                Some((index, tensor)) => Err(invalid!(
                    "Inputs to operation {name} of type Select must have the same size and shape.  \
                     Input 0: {shape} != input {}: {}",
                    index + 1,
                    tensor.shape()
                )),
            }
        }
    }
}

fn choose(ctx: &Ctx<'_>, condition: &Tensor, t: &Tensor, e: &Tensor) -> Result<Tensor> {
    let (c, x, y) = (condition.shape(), t.shape(), e.shape());
    let not_broadcastable = || invalid!("condition {c}, then {x}, and else {y} must be broadcastable");
    let both = broadcast_shape(x, y).map_err(|_| not_broadcastable())?;
    let shape = broadcast_shape(c, &both).map_err(|_| not_broadcastable())?;
    if shape.checked_elements()? == 0 {
        return Tensor::zeros_of(t.dtype(), shape);
    }
    let meeting = Broadcast::<3>::of([c, x, y]).ok_or_else(not_broadcastable)?;
    let conditions = condition.values::<bool>()?;
    match t.dtype() {
        DType::STRING => {
            let chosen = choose_clones(&shape, [c, x, y], conditions, t.strings()?, e.strings()?);
            Tensor::from_strings(shape, chosen)
        }
        DType::RESOURCE => {
            let chosen = choose_clones(&shape, [c, x, y], conditions, t.handles()?, e.handles()?);
            Tensor::from_handles(shape, chosen)
        }
        DType::VARIANT => {
            let chosen = choose_clones(&shape, [c, x, y], conditions, t.variants()?, e.variants()?);
            Tensor::from_variants(shape, chosen)
        }
        _ => choose_plain(ctx, &meeting, shape, conditions, t, e),
    }
}

/// Elements are only moved, so all types of one size share a loop.
fn choose_plain(
    ctx: &Ctx<'_>,
    meeting: &Broadcast<3>,
    shape: Shape,
    conditions: &[bool],
    t: &Tensor,
    e: &Tensor,
) -> Result<Tensor> {
    match (t.dtype(), t.dtype().size()) {
        (DType::BOOL, _) => choose_typed::<bool>(ctx, meeting, shape, conditions, t, e, DType::BOOL),
        (_, 1) => choose_typed::<u8>(ctx, meeting, shape, conditions, t, e, DType::U8),
        (_, 2) => choose_typed::<u16>(ctx, meeting, shape, conditions, t, e, DType::U16),
        (_, 4) => choose_typed::<u32>(ctx, meeting, shape, conditions, t, e, DType::U32),
        (_, 8) => choose_typed::<u64>(ctx, meeting, shape, conditions, t, e, DType::U64),
        _ => choose_typed::<Complex64>(ctx, meeting, shape, conditions, t, e, DType::C128),
    }
}

fn choose_typed<T: Element>(
    ctx: &Ctx<'_>,
    meeting: &Broadcast<3>,
    shape: Shape,
    conditions: &[bool],
    t: &Tensor,
    e: &Tensor,
    dtype: DType,
) -> Result<Tensor> {
    let (x, y) = (t.clone().retyped(dtype)?, e.clone().retyped(dtype)?);
    let mut out = Tensor::scratch::<T>(shape)?;
    let (x, y) = (x.values::<T>()?, y.values::<T>()?);
    elementwise::select(ctx.pool(), cost::SIMPLE, meeting, conditions, x, y, out.values_mut()?);
    out.retyped(t.dtype())
}

/// Strings, handles and variants are cloned one by one.
fn choose_clones<T: Clone>(whole: &Shape, shapes: [&Shape; 3], conditions: &[bool], t: &[T], e: &[T]) -> Vec<T> {
    let [c, x, y] = shapes.map(|shape| places(shape, whole));
    c.zip(x.zip(y)).map(|(c, (x, y))| if conditions[c] { t[x].clone() } else { e[y].clone() }).collect()
}

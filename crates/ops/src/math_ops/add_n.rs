//! Sums of many tensors of one shape.

use graph::{AttrValue, Node, Output};
use math::function::Number;
use math::lanes::{Meeting, Pairs};
use op::shapes::merged;
use op::{Ctx, Grad, Gradient, Grads, Kernel, Op, Setup, ShapeQuery, many, outputs};
use status::{Result, internal, invalid};
use tensor::{Complex32, Complex64, Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "AddN(inputs: N * T) -> sum: T; N: int >= 1; T: {numbertype, variant}; commutative; aggregate",
        shape: merged,
        grad: Grad::Rule(add_n_rule),
        kernel: add_n_kernel,
    },
    Op {
        def: "AccumulateNV2(inputs: N * T) -> sum: T; N: int >= 1; T: numbertype; shape: shape; commutative; aggregate",
        shape: accumulated_shape,
        grad: Grad::Rule(add_n_rule),
        kernel: add_n_kernel,
    },
];

/// The sum of tensors of one shape.
pub fn add_n(inputs: &[Output]) -> Output {
    inputs[0].scope().op("AddN").inputs(inputs).output()
}

fn accumulated_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let inputs = merged(query)?.pop().unwrap_or(PartialShape::unknown());
    match query.attr("shape")? {
        AttrValue::Shape(shape) => Ok(vec![inputs.merge(shape)?]),
        _ => Ok(vec![inputs]),
    }
}

fn add_n_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(op.all_inputs().iter().map(|_| Some(Gradient::Dense(dy.clone()))).collect())
}

fn add_n_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (name, op) = (setup.name().to_string(), setup.def().op.clone());
    if setup.dtype("T")? == tensor::DType::VARIANT {
        return Ok(many(|ctx, mut inputs| Ok(outputs![sum_of_variants(ctx, inputs.tensors_from(0)?)?])));
    }
    for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => {
        let (name, op) = (name.clone(), op.clone());
        Ok(many(move |ctx, mut inputs| {
            let tensors = inputs.tensors_from(0)?;
            check_shapes(&tensors, &name, &op)?;
            Ok(outputs![sum::<T>(ctx, Pairs::vector(<T as Number>::add), tensors)?])
        }))
    })
}

fn check_shapes(tensors: &[Tensor], name: &str, op: &str) -> Result<()> {
    let first: &Shape = tensors.first().map(Tensor::shape).ok_or_else(|| internal!("a sum of no tensors"))?;
    match tensors.iter().enumerate().find(|(_, tensor)| tensor.shape() != first) {
        None => Ok(()),
        Some((index, other)) => Err(invalid!(
            "Inputs to operation {name} of type {op} must have the same size and shape.  \
             Input 0: {first} != input {index}: {}",
            other.shape()
        )),
    }
}

/// Variants know themselves how to add.
fn sum_of_variants(ctx: &Ctx<'_>, tensors: Vec<Tensor>) -> Result<Tensor> {
    if tensors.iter().any(|tensor| tensor.shape().rank() != 0) {
        return Err(invalid!("AddN of non-scalar Tensor with dtype=DT_VARIANT is not supported."));
    }
    let mut tensors = tensors.into_iter();
    let first = tensors.next().ok_or_else(|| internal!("a sum of no tensors"))?;
    tensors.try_fold(first, |sum, tensor| crate::data_structures::arithmetic::add(ctx, sum, &tensor))
}

/// Adds all into one that nobody else holds, if there is one.
fn sum<T: Element>(ctx: &Ctx<'_>, add: Pairs<T, T, T>, mut tensors: Vec<Tensor>) -> Result<Tensor> {
    let unique = tensors.iter_mut().position(Tensor::is_unique);
    let mut sum = tensors.swap_remove(unique.unwrap_or(0));
    if unique.is_none()
        && let Some(second) = tensors.pop()
    {
        let mut fresh = Tensor::scratch_of(sum.dtype(), sum.shape())?;
        add.apply(ctx.pool(), Meeting::Flat, sum.values()?, second.values()?, fresh.values_mut()?);
        sum = fresh;
    }
    for tensor in tensors {
        add.apply_left(ctx.pool(), Meeting::Flat, sum.values_mut()?, tensor.values()?);
    }
    Ok(sum)
}

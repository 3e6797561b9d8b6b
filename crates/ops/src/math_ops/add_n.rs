//! AddN: the sum of several tensors of one shape.

use graph::{AttrValue, Node, Output};
use math::function::Number;
use math::lanes::{Meeting, Pairs};
use op::shapes::merged;
use op::{Ctx, Grad, Gradient, Grads, Inputs, Kernel, Op, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, internal, invalid};
use tensor::{Complex32, Complex64, Element, PartialShape, Tensor};

/// Shorter tensors are added by a plain loop: finding the best one takes longer than adding them.
const SHORT: usize = 64;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "AddN(inputs: N * T) -> sum: T; N: int >= 1; T: {numbertype, variant}; commutative; aggregate",
        shape: merged,
        grad: Grad::Rule(add_n_rule),
        kernel: add_n_kernel,
        facts: PLAIN,
    },
    Op {
        def: "AccumulateNV2(inputs: N * T) -> sum: T; N: int >= 1; T: numbertype; shape: shape; commutative; aggregate",
        shape: accumulated_shape,
        grad: Grad::Rule(add_n_rule),
        kernel: add_n_kernel,
        facts: PLAIN,
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
        Ok(many(move |ctx, inputs| {
            check_shapes(&inputs, &name, &op)?;
            Ok(outputs![sum::<T>(ctx, Pairs::vector(<T as Number>::add), inputs)?])
        }))
    })
}

fn check_shapes(inputs: &Inputs, name: &str, op: &str) -> Result<()> {
    let first = inputs.look(0)?.shape();
    for index in 1..inputs.len() {
        let other = inputs.look(index)?.shape();
        if other != first {
            return Err(invalid!(
                "Inputs to operation {name} of type {op} must have the same size and shape.  \
                 Input 0: {first} != input {index}: {other}",
            ));
        }
    }
    Ok(())
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

/// Adds all inputs into one that is not shared, if there is one.
fn sum<T: Element + Number>(ctx: &Ctx<'_>, add: Pairs<T, T, T>, mut inputs: Inputs) -> Result<Tensor> {
    if inputs.len() == 1 {
        return inputs.tensor(0);
    }
    let mut unique = None;
    for index in 0..inputs.len() {
        if inputs.look_mut(index)?.is_unique() {
            unique = Some(index);
            break;
        }
    }
    let taken = unique.unwrap_or(0);
    let mut sum = inputs.tensor(taken)?;
    let mut others = (0..inputs.len()).filter(|&index| index != taken);
    if unique.is_none()
        && let Some(second) = others.next()
    {
        let mut fresh = Tensor::scratch_of(sum.dtype(), sum.shape())?;
        add.apply(ctx.pool(), Meeting::Flat, sum.values()?, inputs.look(second)?.values()?, fresh.values_mut()?);
        sum = fresh;
    }
    let total = sum.values_mut::<T>()?;
    for index in others {
        let values = inputs.look(index)?.values::<T>()?;
        if total.len() < SHORT {
            total.iter_mut().zip(values).for_each(|(total, value)| *total = Number::add(*total, *value));
        } else {
            add.apply_left(ctx.pool(), Meeting::Flat, total, values);
            drop(inputs.tensor(index)?);
        }
    }
    Ok(sum)
}

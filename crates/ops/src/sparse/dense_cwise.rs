//! SparseDenseCwiseMul, Div and Add: combines the values of a sparse tensor with the dense values at their
//! coordinates.

use super::dense_add::sparse_dense_add;
use crate::array::index::joined;
use crate::array::nodes;
use graph::{Node, Output};
use math::function::{Number, Ordered};
use op::{Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{DType, Element, PartialShape, Shape, Tensor};

macro_rules! row {
    ($name:literal, $grad:expr, $division:literal, $combine:ident) => {
        Op {
            def: concat!($name, "(sp_indices: int64, sp_values: T, sp_shape: int64, dense: T) -> output: T; T: numbertype"),
            shape: cwise_shape,
            grad: $grad,
            kernel: |setup| for_core!(setup, [f32, f64, i32, i64, u64], T => Ok(kernel::<T>($division, T::$combine))), facts: PLAIN }
    };
}

pub(crate) const OPS: &[Op] = &[
    row!("SparseDenseCwiseMul", Grad::Rule(mul_rule), false, mul),
    row!("SparseDenseCwiseDiv", Grad::Rule(div_rule), true, div),
    row!("SparseDenseCwiseAdd", Grad::Unknown, false, add),
];

/// Values of a sparse tensor, given as indices, values and shape, times those of `dense` at their places.
pub fn sparse_dense_mul(a: [&Output; 3], dense: &Output) -> Output {
    build("SparseDenseCwiseMul", a, dense)
}

/// Values of a sparse tensor over those of `dense` at their places.
pub fn sparse_dense_div(a: [&Output; 3], dense: &Output) -> Output {
    build("SparseDenseCwiseDiv", a, dense)
}

/// Values of a sparse tensor plus those of `dense` at their places.
pub fn sparse_dense_values_add(a: [&Output; 3], dense: &Output) -> Output {
    build("SparseDenseCwiseAdd", a, dense)
}

fn build(op: &str, a: [&Output; 3], dense: &Output) -> Output {
    dense.scope().op(op).input(a[0]).input(a[1]).input(a[2]).input(dense).output()
}

fn cwise_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let indices = query.inputs[0].merge(&PartialShape::of_rank(2))?;
    Ok(vec![PartialShape::new(&[indices.dims().map_or(-1, |dims| dims[0])])])
}

/// The dense values at the places of the sparse ones.
fn met(op: &Node) -> Output {
    let (indices, values, shape, dense) = (op.input(0), op.input(1), op.input(2), op.input(3));
    sparse_dense_values_add([&indices, &nodes::zeros_like(&values), &shape], &dense)
}

/// Values summed into a tensor like the dense one, over the axes along which it was repeated.
fn sum_to_dense(op: &Node, values: &Output) -> Output {
    let (indices, shape, dense) = (op.input(0), op.input(2), op.input(3));
    let scope = dense.scope();
    let dims = nodes::shape(&dense, DType::I64);
    let one = nodes::ints(scope, &[1]);
    let added = nodes::reshape(&(nodes::size(&shape, DType::I32) - nodes::rank(&dense)), &one);
    let ones = scope.op("Fill").input(&added).input(&dims.like(1.0)).output();
    let repeats = &shape / nodes::concat(&[&ones, &dims]);
    let begin = nodes::concat(&[&nodes::ints(scope, &[0]), &added]);
    let places = &indices / repeats;
    let places = scope.op("Slice").input(&places).input(&begin).input(&nodes::ints(scope, &[-1, -1])).output();
    sparse_dense_add([&places, values, &dims], &nodes::zeros_like(&dense))
}

fn mul_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let dense = sum_to_dense(op, &(dy * op.input(1)));
    Ok(grads![NoGradient, dy * met(op), NoGradient, dense])
}

fn div_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let divisors = met(op);
    let dense = sum_to_dense(op, &(dy * (-op.input(1) / (&divisors * &divisors))));
    Ok(grads![NoGradient, dy / &divisors, NoGradient, dense])
}

fn kernel<T: Element + Ordered>(division: bool, combine: fn(T, T) -> T) -> Kernel {
    many(move |_, inputs| run(inputs, division, combine))
}

fn run<T: Element + Ordered>(mut inputs: Inputs, division: bool, combine: fn(T, T) -> T) -> Result<Outputs> {
    let (indices, mut values) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let (shape, dense) = (inputs.tensor(2)?, inputs.tensor(3)?);
    check(&indices, &values, &shape)?;
    let sparse = Shape::checked(shape.values::<i64>()?)?;
    check_broadcast(&sparse, dense.shape())?;
    let (table, rank) = (dense.values::<T>()?, sparse.rank());
    let all = indices.values::<i64>()?;
    for (number, value) in values.values_mut::<T>()?.iter_mut().enumerate() {
        let place = dense_place(&all[number * rank..][..rank], &sparse, dense.shape())?;
        let met = table[place];
        if division && met == T::ZERO {
            return Err(invalid!("SparseDenseCwiseDiv cannot divide by zero,but input dense tensor contains zero "));
        }
        *value = combine(*value, met);
    }
    Ok(outputs![values])
}

fn check(indices: &Tensor, values: &Tensor, shape: &Tensor) -> Result<()> {
    let &[count, rank] = indices.shape().dims() else {
        return Err(invalid!("Input sp_indices should be a matrix but received shape: {}", indices.shape()));
    };
    if values.shape().rank() != 1 || shape.shape().rank() != 1 {
        return Err(invalid!(
            "Inputs sp_values and sp_shape should be vectors but received shapes: {} and {}",
            values.shape(),
            shape.shape()
        ));
    }
    if values.elements() != count {
        return Err(invalid!(
            "The first dimension of values and indices should match. ({} vs. {count})",
            values.elements()
        ));
    }
    if shape.elements() != rank {
        return Err(invalid!(
            "Number of dimensions must match second dimension of indices. Got {} dimensions, indices shape: {}",
            shape.elements(),
            indices.shape()
        ));
    }
    if rank == 0 {
        return Err(invalid!("The shape argument requires at least one element."));
    }
    Ok(())
}

/// Only the dense side is repeated.
fn check_broadcast(sparse: &Shape, dense: &Shape) -> Result<()> {
    let fits = dense.rank() <= sparse.rank()
        && dense
            .iter()
            .rev()
            .zip(sparse.iter().rev())
            .all(|(&dense, &sparse)| dense == sparse || (dense == 1 && sparse > 0));
    match fits {
        true => Ok(()),
        false => Err(invalid!(
            "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: [{}] vs. [{}]",
            joined(sparse, ","),
            joined(dense, ",")
        )),
    }
}

fn dense_place(index: &[i64], sparse: &Shape, dense: &Shape) -> Result<usize> {
    if index.iter().zip(sparse.iter()).any(|(&at, &dim)| at < 0 || at as u64 >= dim as u64) {
        return Err(invalid!("Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape"));
    }
    let own = &index[sparse.rank() - dense.rank()..];
    Ok(own.iter().zip(dense.iter()).fold(0, |place, (&at, &dim)| place * dim + if dim == 1 { 0 } else { at as usize }))
}

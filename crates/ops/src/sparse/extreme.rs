//! SparseSparseMaximum and SparseSparseMinimum: the elementwise maximum and minimum of two sparse tensors.

use super::coo::Coo;
use super::union::{check_same_shape, indices_of, union};
use graph::Output;
use math::function::Ordered;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SparseSparseMaximum(a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, \
              b_shape: int64) -> output_indices: int64, output_values: T; T: realnumbertype",
        shape: extreme_shape,
        grad: Grad::Unknown,
        kernel: |setup| for_core!(setup, [f32, f64, i32, i64, u32, u64], T => Ok(kernel::<T>(T::larger))),
        facts: PLAIN,
    },
    Op {
        def: "SparseSparseMinimum(a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, \
              b_shape: int64) -> output_indices: int64, output_values: T; T: numbertype",
        shape: extreme_shape,
        grad: Grad::Unknown,
        kernel: |setup: &Setup<'_>| for_core!(setup, [f32, f64, i32, i64, u32, u64], T => Ok(kernel::<T>(T::smaller))),
        facts: PLAIN,
    },
];

/// The larger of two sparse tensors at every place that either has: indices and values.
pub fn sparse_maximum(a: [&Output; 3], b: [&Output; 3]) -> (Output, Output) {
    build("SparseSparseMaximum", a, b)
}

/// The smaller of two sparse tensors at every place that either has: indices and values.
pub fn sparse_minimum(a: [&Output; 3], b: [&Output; 3]) -> (Output, Output) {
    build("SparseSparseMinimum", a, b)
}

fn build(op: &str, a: [&Output; 3], b: [&Output; 3]) -> (Output, Output) {
    let builder = a[1].scope().op(op).input(a[0]).input(a[1]).input(a[2]);
    let node = builder.input(b[0]).input(b[1]).input(b[2]).node();
    (node.output(0), node.output(1))
}

fn extreme_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let shape = query.inputs[2].merge(&PartialShape::of_rank(1))?;
    let rank = shape.dims().map_or(-1, |dims| dims[0]);
    Ok(vec![PartialShape::new(&[-1, rank]), PartialShape::of_rank(1)])
}

fn kernel<T: Element + Ordered>(choose: fn(T, T) -> T) -> Kernel {
    many(move |_, inputs| run(inputs, choose))
}

/// A side that has nothing at a place has zero there.
fn run<T: Element + Ordered>(mut inputs: Inputs, choose: fn(T, T) -> T) -> Result<Outputs> {
    let [ai, av, a_shape, bi, bv, b_shape] = inputs.tensors(0, 6)?.try_into().map_err(|_| invalid!("6 inputs"))?;
    let (a, b) = (Coo::new(&ai, &av, &a_shape)?, Coo::new(&bi, &bv, &b_shape)?);
    a.check_inside()?;
    b.check_inside()?;
    if a.rank() == 0 {
        return Err(invalid!("Tensors must not be empty"));
    }
    check_same_shape(a.dims, b.dims)?;
    let met = union(&a, &b);
    let (x, y) = (av.values::<T>()?, bv.values::<T>()?);
    let value = |values: &[T], number: Option<usize>| number.map_or(T::ZERO, |number| values[number]);
    let chosen: Vec<T> = met.iter().map(|&(i, j)| choose(value(x, i), value(y, j))).collect();
    Ok(outputs![indices_of(&a, &b, &met)?, Tensor::vector(&chosen)])
}

//! SparseReduceSum and SparseReduceMax, with dense or sparse results.

use super::coo::{Coo, index_tensor, sorted_order};
use crate::array::gather_nd::gather_nd;
use crate::array::nodes;
use graph::{Node, Output};
use math::function::{Number, Ordered};
use op::shapes::unknown;
use op::{Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{Complex32, Complex64, DType, Element, PartialShape, Shape, Tensor};

macro_rules! row {
    ($def:literal, $shape:expr, $grad:expr, [$($rust:ty),*], $combine:path) => {
        Op {
            def: $def,
            shape: $shape,
            grad: $grad,
            kernel: |setup| for_core!(setup, [$($rust),*], T => kernel::<T>(setup, $combine)), facts: PLAIN }
    };
}

pub(crate) const OPS: &[Op] = &[
    row!(
        "SparseReduceSum(input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32) -> output: T; \
         keep_dims: bool = false; T: numbertype",
        unknown,
        Grad::Rule(sum_rule),
        [f32, f64, i32, i64, Complex32, Complex64],
        Number::add
    ),
    row!(
        "SparseReduceMax(input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32) -> output: T; \
         keep_dims: bool = false; T: realnumbertype",
        unknown,
        Grad::Unknown,
        [f32, f64, i32, i64, u64],
        Ordered::larger
    ),
    row!(
        "SparseReduceSumSparse(input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32) -> \
         output_indices: int64, output_values: T, output_shape: int64; keep_dims: bool = false; T: numbertype",
        sparse_shape,
        Grad::Unknown,
        [f32, f64, i32, i64, u32, u64, Complex32, Complex64],
        Number::add
    ),
    row!(
        "SparseReduceMaxSparse(input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32) -> \
         output_indices: int64, output_values: T, output_shape: int64; keep_dims: bool = false; T: realnumbertype",
        sparse_shape,
        Grad::Unknown,
        [f32, f64, i32, i64, u32, u64],
        Ordered::larger
    ),
];

/// The sum of a sparse tensor, given as indices, values and shape, over some axes; dense.
pub fn sparse_reduce_sum(a: [&Output; 3], axes: &Output, keep_dims: bool) -> Output {
    build("SparseReduceSum", a, axes, keep_dims)
}

/// The largest values of a sparse tensor over some axes; dense, zero where it has none.
pub fn sparse_reduce_max(a: [&Output; 3], axes: &Output, keep_dims: bool) -> Output {
    build("SparseReduceMax", a, axes, keep_dims)
}

fn build(op: &str, a: [&Output; 3], axes: &Output, keep_dims: bool) -> Output {
    let builder = a[1].scope().op(op).input(a[0]).input(a[1]).input(a[2]).input(axes);
    builder.attr("keep_dims", keep_dims).output()
}

fn sparse_shape(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(2), PartialShape::of_rank(1), PartialShape::of_rank(1)])
}

/// Each value gets the gradient of the sum that it is part of.
fn sum_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [indices, _, shape, axes] = op.inputs()?;
    let scope = dy.scope();
    let rank = nodes::size(&shape, DType::I32);
    let axes = (nodes::flat(&axes) + &rank) % &rank;
    // One where an axis is reduced, its length elsewhere.
    let ones = scope.op("Fill").input(&nodes::shape(&axes, DType::I32)).input(&shape.like(1.0)).output();
    let kept = crate::array::dynamic_stitch::dynamic_stitch(&[nodes::range(&rank), axes], &[shape.clone(), ones]);
    let places = &indices / (&shape / &kept);
    Ok(grads![NoGradient, gather_nd(&nodes::reshape(dy, &kept), &places), NoGradient, NoGradient])
}

fn kernel<T: Element>(setup: &Setup<'_>, combine: fn(T, T) -> T) -> Result<Kernel> {
    let keep_dims = setup.bool("keep_dims")?;
    let sparse = setup.output_types().len() == 3;
    Ok(many(move |_, inputs| run(inputs, keep_dims, sparse, combine)))
}

fn run<T: Element>(mut inputs: Inputs, keep_dims: bool, sparse: bool, combine: fn(T, T) -> T) -> Result<Outputs> {
    let (indices, values) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let (shape, axes) = (inputs.tensor(2)?, inputs.tensor(3)?);
    let reduced = checked_axes(&shape, &axes)?;
    let coo = Coo::new(&indices, &values, &shape)?;
    coo.shape()?;
    let kept: Vec<usize> = (0..coo.rank()).filter(|&axis| !reduced[axis]).collect();
    let result = result_shape(coo.dims, &reduced, keep_dims)?;
    let keys: Vec<i64> = coo.each_index().flat_map(|index| kept.iter().map(|&axis| index[axis])).collect();
    let key = |number: usize| &keys[number * kept.len()..][..kept.len()];
    let values = values.values::<T>()?;
    let mut groups: Vec<(usize, T)> = Vec::new();
    for number in sorted_order(coo.count(), key) {
        match groups.last_mut() {
            Some((first, sum)) if key(*first) == key(number) => *sum = combine(*sum, values[number]),
            _ => groups.push((number, values[number])),
        }
    }
    match sparse {
        true => sparse_result(&groups, &result, &reduced, keep_dims, |number| coo.index(number)),
        false => dense_result(&groups, result, &kept, &coo),
    }
}

/// Which axes are reduced.
fn checked_axes(shape: &Tensor, axes: &Tensor) -> Result<Vec<bool>> {
    if shape.shape().rank() != 1 {
        return Err(invalid!("Expected input_shape to be a vector; got shape: {}", shape.shape()));
    }
    if axes.shape().rank() > 1 {
        return Err(invalid!("Expected reduction_axes to be a scalar or a vector; got shape: {}", axes.shape()));
    }
    let rank = shape.elements();
    let mut reduced = vec![false; rank];
    for &axis in axes.values::<i32>()? {
        match crate::array::args::to_axis(axis.into(), rank) {
            Some(place) => reduced[place] = true,
            None => return Err(invalid!("Invalid reduction dimension {axis}, for input with {rank} dimensions.")),
        }
    }
    Ok(reduced)
}

fn result_shape(dims: &[i64], reduced: &[bool], keep_dims: bool) -> Result<Shape> {
    let size = |(&dim, &reduced): (&i64, &bool)| match reduced {
        true => keep_dims.then_some(1),
        false => Some(dim),
    };
    Shape::checked(&dims.iter().zip(reduced).filter_map(size).collect::<Vec<i64>>())
}

fn dense_result<T: Element>(groups: &[(usize, T)], shape: Shape, kept: &[usize], coo: &Coo<'_>) -> Result<Outputs> {
    let mut output = Tensor::zeros::<T>(shape)?;
    let sums = output.values_mut::<T>()?;
    for &(number, sum) in groups {
        let index = coo.index(number);
        if kept.iter().any(|&axis| index[axis] < 0 || index[axis] >= coo.dims[axis]) {
            return Err(invalid!("indices[{number}] lies outside of shape {:?}", coo.dims));
        }
        let place = kept.iter().fold(0, |place, &axis| place * coo.dims[axis] as usize + index[axis] as usize);
        sums[place] = sum;
    }
    Ok(outputs![output])
}

fn sparse_result<'a, T: Element>(
    groups: &[(usize, T)],
    shape: &Shape,
    reduced: &[bool],
    keep_dims: bool,
    index: impl Fn(usize) -> &'a [i64],
) -> Result<Outputs> {
    let coordinate = |(&at, &reduced): (&i64, &bool)| match reduced {
        true => keep_dims.then_some(0),
        false => Some(at),
    };
    let rows = groups.iter().flat_map(|group| index(group.0).iter().zip(reduced).filter_map(coordinate));
    let rows: Vec<i64> = rows.collect();
    let values: Vec<T> = groups.iter().map(|group| group.1).collect();
    let indices = index_tensor(&rows, groups.len(), shape.rank())?;
    Ok(outputs![indices, Tensor::vector(&values), Tensor::vector(&shape.to_i64())])
}

//! UnravelIndex: coordinates of flat indices.

use op::shapes::integers;
use op::{Grad, Kernel, Op, PLAIN, Setup, ShapeQuery, binary};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "UnravelIndex(indices: Tidx, dims: Tidx) -> output: Tidx; Tidx: {int32, int64} = int32",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

/// The coordinates of flat indices in a tensor of shape `dims`: one row for each dimension.
pub fn unravel_index(indices: &graph::Output, dims: &graph::Output) -> graph::Output {
    indices.scope().op("UnravelIndex").input(indices).input(dims).output()
}

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let rank = query.inputs[1].dim(0).map_or(-1, |rank| rank as i64);
    Ok(vec![match query.inputs[0].dims() {
        Some([]) => PartialShape::new(&[rank]),
        Some([count]) => PartialShape::new(&[rank, *count]),
        _ => PartialShape::unknown(),
    }])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let limit = if setup.dtype("Tidx")? == tensor::DType::I64 { i64::MAX } else { i32::MAX.into() };
    for_types!(setup, setup.dtype("Tidx")?, [i32, i64], T => Ok(binary(move |_, indices, dims| {
        let sizes = checked(&indices, &dims, limit)?;
        let strides = strides(&sizes);
        let numbers = integers(&indices)?;
        let shape = if indices.shape().rank() == 0 { vec![sizes.len()] } else { vec![sizes.len(), numbers.len()] };
        let mut out = Tensor::scratch::<T>(Shape::from(shape))?;
        for (axis, row) in out.values_mut::<T>()?.chunks_exact_mut(numbers.len()).enumerate() {
            for (out, number) in row.iter_mut().zip(&numbers) {
                // The remainder of a negative index is negative, as in C.
                *out = (number % (strides[axis] * sizes[axis]) / strides[axis]) as T;
            }
        }
        Ok(out)
    })))
}

/// The distance between neighbours along each dimension.
fn strides(sizes: &[i64]) -> Vec<i64> {
    (0..sizes.len()).map(|axis| sizes[axis + 1..].iter().product()).collect()
}

fn listed(sizes: &[i64]) -> String {
    sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")
}

fn checked(indices: &Tensor, dims: &Tensor, limit: i64) -> Result<Vec<i64>> {
    if indices.shape().rank() > 1 {
        return Err(invalid!("The indices can only be scalar or vector, got \"{}\"", indices.shape()));
    }
    if indices.elements() == 0 {
        return Err(invalid!(
            "received empty tensor indices: Tensor<type: {} shape: {} values: >",
            indices.dtype(),
            indices.shape()
        ));
    }
    if dims.shape().rank() != 1 {
        return Err(invalid!("The indices can only be 1-D, got \"{}\"", dims.shape()));
    }
    let sizes = integers(dims)?;
    let mut product = 1_i64;
    for (index, &size) in sizes.iter().enumerate() {
        if size == 0 {
            return Err(invalid!("Input dims cannot contain a dim of zero, but dims contains zero at index {index}"));
        }
        if size < 0 {
            return Err(invalid!("Input dims cannot be negative. Got dim = {size} at index {index}"));
        }
        product = product
            .checked_mul(size)
            .filter(|&product| product <= limit)
            .ok_or_else(|| invalid!("Input dims product is causing integer overflow: ({})", listed(&sizes)))?;
    }
    match integers(indices)?.iter().all(|&index| index < product) {
        true => Ok(sizes),
        false => Err(invalid!("index is out of bound as with dims")),
    }
}

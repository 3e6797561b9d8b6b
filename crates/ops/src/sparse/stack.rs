//! Splits sparse tensors into rows, and stacks rows.

use super::coo::{Coo, index_tensor};
use crate::array::units::Unit;
use op::{Outputs, outputs};
use status::{Result, invalid};
use tensor::{DType, Shape, Tensor};

/// Indices, values and dense shape.
pub(super) type Parts = [Tensor; 3];

/// The rows of a sparse tensor of at least two axes, without their first axis; every row of it, empty ones too.
pub(super) fn rows(indices: &Tensor, values: &Tensor, shape: &Tensor) -> Result<Vec<Parts>> {
    if indices.shape().rank() != 2 {
        return Err(invalid!("Input indices should be a matrix but received shape {}", indices.shape()));
    }
    check_vectors(values, shape)?;
    if shape.elements() < 2 {
        return Err(invalid!("Rank of input SparseTensor should be > 1, but saw rank: {}", shape.elements()));
    }
    let coo = Coo::new(indices, values, shape)?;
    coo.shape()?;
    coo.check_sorted()?;
    let count = Shape::checked(&coo.dims[..1])?.elements();
    let row_shape = Tensor::vector(&coo.dims[1..]);
    let (mut rows, mut start) = (Vec::new(), 0);
    rows.try_reserve(count).map_err(|_| status::exhausted!("OOM when splitting {count} rows"))?;
    for row in 0..count {
        let end = start + (start..coo.count()).take_while(|&number| coo.index(number)[0] == row as i64).count();
        let coordinates: Vec<i64> = (start..end).flat_map(|number| &coo.index(number)[1..]).copied().collect();
        let indices = index_tensor(&coordinates, end - start, coo.rank() - 1)?;
        rows.push([indices, values.slice_elements(start, [end - start])?, row_shape.clone()]);
        start = end;
    }
    Ok(rows)
}

/// An error unless values and shape of a sparse tensor are vectors.
pub(super) fn check_vectors(values: &Tensor, shape: &Tensor) -> Result<()> {
    if values.shape().rank() != 1 {
        return Err(invalid!("Input values should be a vector but received shape {}", values.shape()));
    }
    if shape.shape().rank() != 1 {
        return Err(invalid!("Input shape should be a vector but received shape {}", shape.shape()));
    }
    Ok(())
}

/// Sparse tensors arranged in `outer` dimensions as one; `measure` is what must agree, in the words of the op.
pub(super) fn stacked(parts: &[Parts], outer: &[usize], dtype: DType, measure: &str, extra: usize) -> Result<Outputs> {
    let rank = parts.first().map_or(0, |part| part[2].elements());
    let mut dims = vec![0; rank];
    for (i, [_, _, shape]) in parts.iter().enumerate() {
        if shape.elements() != rank {
            return Err(invalid!(
                "Inconsistent {measure} across SparseTensors: rank prior to SparseTensor[{i}] was: {} but rank of \
                 SparseTensor[{i}] is: {}",
                rank + extra,
                shape.elements() + extra
            ));
        }
        let sizes = shape.values::<i64>()?;
        dims.iter_mut().zip(sizes).for_each(|(dim, &size)| *dim = size.max(*dim));
    }
    let total = parts.iter().map(|part| part[1].elements()).sum();
    let mut rows = Vec::with_capacity(total * (outer.len() + rank));
    for (number, [indices, values, _]) in parts.iter().enumerate() {
        let prefix = coordinates(number, outer);
        for index in 0..values.elements() {
            rows.extend_from_slice(&prefix);
            rows.extend_from_slice(&indices.values::<i64>()?[index * rank..][..rank]);
        }
    }
    let shape: Vec<i64> = outer.iter().map(|&dim| dim as i64).chain(dims).collect();
    let values = joined_values(parts, dtype, total)?;
    Ok(outputs![index_tensor(&rows, total, shape.len())?, values, Tensor::vector(&shape)])
}

fn coordinates(mut number: usize, dims: &[usize]) -> Vec<i64> {
    let mut coordinates = vec![0; dims.len()];
    for (at, &dim) in coordinates.iter_mut().zip(dims).rev() {
        *at = (number % dim) as i64;
        number /= dim;
    }
    coordinates
}

fn joined_values(parts: &[Parts], dtype: DType, total: usize) -> Result<Tensor> {
    let mut values = Tensor::scratch_of(dtype, [total])?;
    let mut start = 0;
    for [_, part, _] in parts {
        let end = start + part.elements();
        for_units!(dtype, E => E::of_mut(&mut values)?[start..end].clone_from_slice(E::of(part)?));
        start = end;
    }
    Ok(values)
}

/// An error unless the three parts of sparse tensor `index` are consistent.
pub(super) fn check_parts(parts: &Parts, index: usize, dtype: DType) -> Result<()> {
    let [indices, values, shape] = parts;
    let &[count, rank] = indices.shape().dims() else {
        return Err(invalid!(
            "Expected serialized_sparse[{index}, 0] to represent an index matrix but received shape {}",
            indices.shape()
        ));
    };
    if values.shape().rank() != 1 {
        return Err(invalid!(
            "Expected serialized_sparse[{index}, 1] to represent a values vector but received shape {}",
            values.shape()
        ));
    }
    if values.dtype() != dtype {
        return Err(invalid!(
            "Requested SparseTensor of type {dtype} but SparseTensor[{index}].values.dtype() == {}",
            values.dtype()
        ));
    }
    if values.elements() != count {
        return Err(invalid!(
            "Expected row counts of SparseTensor[{index}].indices and SparseTensor[{index}].values to match but they do \
             not: {count} vs. {}",
            values.elements()
        ));
    }
    if shape.shape().rank() != 1 {
        return Err(invalid!(
            "Expected serialized_sparse[{index}, 1] to be a shape vector but its shape is {}",
            shape.shape()
        ));
    }
    if shape.elements() != rank {
        return Err(invalid!(
            "Expected column counts of SparseTensor[{index}].indices to match size of SparseTensor[{index}].shape but \
             they do not: {rank} vs. {}",
            shape.elements()
        ));
    }
    indices.values::<i64>()?;
    shape.values::<i64>().map(drop)
}

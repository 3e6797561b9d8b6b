//! Reads rows and slices of resource variables.

use super::scatter::{place_in, row_numbers};
use super::var_handle::variable_shape;
use graph::{AttrValue, Node, Output, ShapeQuery};
use op::shapes::integers;
use op::{Ctx, Grad, Grads, Home, Kernel, NoGradient, Op, PLAIN, Setup, Slices, Variable, binary, grads, handle_of};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ResourceGather(resource: resource, indices: Tindices) -> output: dtype; batch_dims: int = 0; \
              validate_indices: bool = true; dtype: type; Tindices: {int32, int64}; stateful",
        shape: gather_shape,
        grad: Grad::Rule(gather_rule),
        kernel: gather_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceGatherNd(resource: resource, indices: Tindices) -> output: dtype; dtype: type; \
              Tindices: {int32, int64}; stateful",
        shape: gather_nd_shape,
        grad: Grad::Rule(gather_nd_rule),
        kernel: gather_nd_kernel,
        facts: PLAIN,
    },
];

/// Rows `indices` of the variable behind a handle.
pub fn resource_gather(handle: &Output, indices: &Output, dtype: DType) -> Output {
    handle.scope().op("ResourceGather").input(handle).input(indices).attr("dtype", dtype).output()
}

/// Slices of the variable behind a handle, one for each row of coordinates in `indices`.
pub fn resource_gather_nd(handle: &Output, indices: &Output, dtype: DType) -> Output {
    handle.scope().op("ResourceGatherNd").input(handle).input(indices).attr("dtype", dtype).output()
}

/// The gradient is that of the rows read, one for each index.
fn gather_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (handle, indices) = (op.input(0), op.input(1));
    let scope = dy.scope();
    let int = |value: i32| constant(dy, Tensor::vector(&[value]));
    let shape = variable_shape(&handle.seen_from(scope), DType::I32);
    let count = scope.op("Size").input(&indices).output();
    let zero = constant(dy, Tensor::scalar(0i32));
    let count = scope.op("ExpandDims").input(&count).input(&zero).output();
    let row = scope.op("StridedSlice").input(&shape).input(&int(1)).input(&int(0)).input(&int(1));
    let row = row.attr("end_mask", 1i64).output();
    let values_shape = scope.op("ConcatV2").inputs([&count, &row]).input(&zero).output();
    let values = scope.op("Reshape").input(dy).input(&values_shape).output();
    let indices = scope.op("Reshape").input(&indices).input(&count).output();
    Ok(grads![Slices { indices, values, shape: Some(shape) }, NoGradient])
}

fn constant(near: &Output, value: Tensor) -> Output {
    let dtype = value.dtype();
    near.scope().op("Const").attr("value", value).attr("dtype", dtype).output()
}

/// The gradient of each slice that was read is added at its origin.
fn gather_nd_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (handle, indices) = (op.input(0), op.input(1));
    let scope = dy.scope();
    let shape = variable_shape(&handle.seen_from(scope), indices.dtype());
    let rows_of_vector = indices.shape().rank() == Some(2) && indices.shape().dim(1) == Some(1);
    if rows_of_vector {
        let axis = vec![-1i64];
        let indices = scope.op("Squeeze").input(&indices).attr("squeeze_dims", axis).output();
        return Ok(grads![Slices { indices, values: dy.clone(), shape: Some(shape) }, NoGradient]);
    }
    let dense = scope.op("ScatterNd").input(&indices).input(dy).input(&shape).output();
    Ok(grads![dense, NoGradient])
}

fn variable_dims<'a>(query: &'a ShapeQuery<'_>) -> Option<&'a [i64]> {
    query.variables.first()?.as_ref()?.1.dims()
}

fn gather_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let AttrValue::Int(batch) = *query.attr("batch_dims")? else { return op::shapes::unknown(query) };
    let (Some(params), Some(indices)) = (variable_dims(query), query.inputs[1].dims()) else {
        return op::shapes::unknown(query);
    };
    let Ok(batch) = usize::try_from(batch) else { return Err(invalid!("batch_dims is negative ({batch})")) };
    if params.len() <= batch || indices.len() < batch {
        return Err(invalid!("Shape must be at least rank {} but is rank {}", batch + 1, params.len()));
    }
    let dims: Vec<i64> = params[..batch].iter().chain(&indices[batch..]).chain(&params[batch + 1..]).copied().collect();
    Ok(vec![PartialShape::new(&dims)])
}

fn gather_nd_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let (Some(params), Some([batch @ .., depth])) = (variable_dims(query), query.inputs[1].dims()) else {
        return op::shapes::unknown(query);
    };
    let Ok(depth) = usize::try_from(*depth) else { return op::shapes::unknown(query) };
    if depth > params.len() {
        return Err(invalid!(
            "indices.shape[-1] must be <= params.rank, but saw indices shape {} and params shape {}",
            query.inputs[1],
            PartialShape::new(params)
        ));
    }
    let dims: Vec<i64> = batch.iter().chain(&params[depth..]).copied().collect();
    Ok(vec![PartialShape::new(&dims)])
}

fn gather_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, batch_dims) = (Home::of(setup), setup.int("batch_dims")?);
    let batch = usize::try_from(batch_dims).map_err(|_| invalid!("batch_dims is negative ({batch_dims})"))?;
    Ok(binary(move |ctx, handle, indices| {
        let variable = home.find::<Variable>(handle_of(&handle)?)?;
        // Locked for the whole copy: if a reader kept the tensor, the next writer would have to copy all of it.
        let value = variable.lock();
        let params = value.as_ref().ok_or_else(|| variable.uninitialized())?;
        gather(ctx, params, &indices, batch)
    }))
}

fn gather(ctx: &Ctx<'_>, params: &Tensor, indices: &Tensor, batch: usize) -> Result<Tensor> {
    let (shape, at) = (params.shape(), indices.shape());
    if shape.rank() == 0 {
        return Err(invalid!("params must be at least 1 dimensional"));
    }
    if shape.rank() <= batch || at.rank() < batch {
        return Err(invalid!("params must have at least {batch} (batch_dims) dimensions but it has shape {shape}"));
    }
    let dims: Shape = shape[..batch].iter().chain(&at[batch..]).chain(&shape[batch + 1..]).copied().collect();
    let (rows, width) = (shape[batch], shape[batch + 1..].iter().product::<usize>());
    let mut numbers = row_numbers(indices, if indices.elements() == 0 { 0 } else { rows })?;
    if batch > 0 {
        let batches: usize = shape[..batch].iter().product();
        if at[..batch] != shape[..batch] {
            return Err(invalid!(
                "Inner size of indices would result in batch_size of 0 and a division by 0 in the \
                                 implementation. This is illegal"
            ));
        }
        let each = numbers.len() / batches.max(1);
        numbers.iter_mut().enumerate().for_each(|(i, row)| *row += i / each.max(1) * rows);
    }
    copy_rows(ctx, params, &numbers, width, dims)
}

/// The rows with these numbers, one after the other.
fn copy_rows(ctx: &Ctx<'_>, params: &Tensor, rows: &[usize], width: usize, shape: Shape) -> Result<Tensor> {
    shape.checked_elements()?;
    let all = || rows.iter().flat_map(|&row| row * width..(row + 1) * width);
    match params.dtype() {
        DType::STRING => {
            let values = params.strings()?;
            Tensor::from_strings(shape, all().map(|i| values[i].clone()).collect())
        }
        DType::VARIANT => {
            let values = params.variants()?;
            Tensor::from_variants(shape, all().map(|i| values[i].clone()).collect())
        }
        DType::RESOURCE => {
            let values = params.handles()?;
            Tensor::from_handles(shape, all().map(|i| values[i].clone()).collect())
        }
        dtype => {
            let mut out = Tensor::scratch_of(dtype, shape)?;
            let bytes = params.buffer().map(|buffer| buffer.bytes()).unwrap_or_default();
            math::gather(ctx.pool(), bytes, width * dtype.size(), rows, out.bytes_mut()?);
            Ok(out)
        }
    }
}

fn gather_nd_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, node) = (Home::of(setup), setup.name().to_string());
    Ok(binary(move |ctx, handle, indices| {
        let variable = home.find::<Variable>(handle_of(&handle)?)?;
        let value = variable.lock();
        let params = value.as_ref().ok_or_else(|| variable.uninitialized())?;
        gather_nd(ctx, params, &indices, &node)
    }))
}

fn gather_nd(ctx: &Ctx<'_>, params: &Tensor, indices: &Tensor, node: &str) -> Result<Tensor> {
    let (shape, at) = (params.shape(), indices.shape());
    if shape.rank() == 0 {
        return Err(invalid!("params must be at least a vector"));
    }
    let Some((&depth, batch)) = at.split_last() else { return Err(invalid!("indices must be at least a vector")) };
    if depth > shape.rank() {
        return Err(invalid!(
            "index innermost dimension length must be <= params rank; saw: {depth} vs. {}",
            shape.rank()
        ));
    }
    let dims: Shape = batch.iter().chain(&shape[depth..]).copied().collect();
    let count: usize = batch.iter().product();
    if count > 0 && shape.elements() == 0 {
        return Err(invalid!("Requested more than 0 entries, but params is empty.  Params shape: {shape}"));
    }
    let coordinates = integers(indices)?;
    let at = |i: usize| &coordinates[i * depth..(i + 1) * depth];
    let rows: Result<Vec<usize>> = (0..count)
        .map(|i| {
            row_of(shape, at(i)).ok_or_else(|| {
                let at: Vec<String> = at(i).iter().map(i64::to_string).collect();
                let place = place_in(&Shape::new(batch), i);
                invalid!(
                    "indices{place} = [{}] does not index into param shape {shape}, node name: {node}",
                    at.join(", ")
                )
            })
        })
        .collect();
    copy_rows(ctx, params, &rows?, shape[depth..].iter().product(), dims)
}

fn row_of(shape: &Shape, at: &[i64]) -> Option<usize> {
    at.iter().zip(shape.iter()).try_fold(0, |row, (&index, &dim)| {
        let index = usize::try_from(index).ok().filter(|&index| index < dim)?;
        Some(row * dim + index)
    })
}

//! SparseSlice: a block of a sparse tensor, and its gradient.

use super::coo::{Coo, index_tensor};
use crate::array::gather::run_gather;
use crate::array::index::from_places;
use crate::array::units::Unit;
use graph::{Node, Output};
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, internal, invalid};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SparseSlice(indices: int64, values: T, shape: int64, start: int64, size: int64) -> output_indices: int64, \
              output_values: T, output_shape: int64; T: type",
        shape: slice_shape,
        grad: Grad::Rules(slice_rule),
        kernel: slice_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseSliceGrad(backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: int64) -> \
              val_grad: T; T: numbertype",
        shape: grad_shape,
        grad: Grad::Unknown,
        kernel: grad_kernel,
        facts: PLAIN,
    },
];

/// The block of a sparse tensor that begins at `start` and has `size`: indices, values, shape.
pub fn sparse_slice(
    indices: &Output,
    values: &Output,
    shape: &Output,
    start: &Output,
    size: &Output,
) -> (Output, Output, Output) {
    let builder = values.scope().op("SparseSlice").input(indices).input(values).input(shape);
    let node = builder.input(start).input(size).node();
    (node.output(0), node.output(1), node.output(2))
}

fn slice_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let shape = query.inputs[2].merge(&PartialShape::of_rank(1))?;
    let rank = shape.dims().map_or(-1, |dims| dims[0]);
    Ok(vec![PartialShape::new(&[-1, rank]), PartialShape::of_rank(1), shape])
}

fn grad_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let indices = query.inputs[1].merge(&PartialShape::of_rank(2))?;
    Ok(vec![PartialShape::new(&[indices.dims().map_or(-1, |dims| dims[0])])])
}

fn slice_rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let back = dys[1].as_ref().map(|dy| {
        let builder = dy.scope().op("SparseSliceGrad").input(dy).input(&op.input(0)).input(&op.input(3));
        builder.input(&op.output(0)).output()
    });
    Ok(grads![NoGradient, back, NoGradient, NoGradient, NoGradient])
}

fn slice_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(run_slice))
}

fn run_slice(ctx: &Ctx<'_>, mut inputs: Inputs) -> Result<Outputs> {
    let (indices, values, shape) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let (start, size) = (inputs.tensor(3)?, inputs.tensor(4)?);
    let coo = Coo::new(&indices, &values, &shape)?;
    let rank = coo.rank();
    for (name, tensor) in [("start", &start), ("size", &size)] {
        if tensor.shape().rank() != 1 {
            return Err(invalid!("Input {name} should be a vector but received shape {}", tensor.shape()));
        }
    }
    for (name, tensor) in [("start", &start), ("size", &size)] {
        if tensor.elements() != rank {
            return Err(invalid!(
                "Expected {name} to be a vector of length {rank} but got length {}",
                tensor.elements()
            ));
        }
    }
    coo.shape()?;
    let (start, size) = (start.values::<i64>()?, size.values::<i64>()?);
    let dims = (0..rank).map(|axis| block_size(coo.dims[axis], start[axis], size[axis]));
    let dims = dims.collect::<Result<Vec<i64>>>()?;
    let inside = |index: &[i64]| {
        let end = |axis: usize| start[axis].saturating_add(size[axis]);
        (0..rank).all(|axis| index[axis] >= start[axis] && index[axis] < end(axis))
    };
    let kept: Vec<usize> = (0..coo.count()).filter(|&number| inside(coo.index(number))).collect();
    let rows = kept.iter().flat_map(|&number| coo.index(number).iter().zip(start).map(|(at, start)| at - start));
    let rows: Vec<i64> = rows.collect();
    let order = from_places(&kept, [kept.len()], DType::I64)?;
    let values = run_gather(ctx, &values, &order, 0, 0)?;
    Ok(outputs![index_tensor(&rows, kept.len(), rank)?, values, Tensor::vector(&dims)])
}

/// The length of the intersection of a block with a dimension.
fn block_size(dim: i64, start: i64, size: i64) -> Result<i64> {
    let size = if start < dim.saturating_sub(size) { size } else { dim.saturating_sub(start).max(0) };
    if size < 0 { Err(invalid!("Expected a non-negative size, got {size}")) } else { Ok(size) }
}

fn grad_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, inputs| run_grad(inputs)))
}

fn run_grad(mut inputs: Inputs) -> Result<Outputs> {
    let (grad, input, start, output) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?, inputs.tensor(3)?);
    check_grad(&grad, &input, &start, &output)?;
    let (count, rank) = (input.shape()[0], input.shape()[1]);
    let (all, parts, start) = (input.values::<i64>()?, output.values::<i64>()?, start.values::<i64>()?);
    let same = |number: usize, part: usize| {
        (0..rank).all(|axis| all[number * rank + axis] == parts[part * rank + axis].wrapping_add(start[axis]))
    };
    let mut sources = vec![None; count];
    let mut used = 0;
    for (number, source) in sources.iter_mut().enumerate() {
        if used < grad.elements() && same(number, used) {
            *source = Some(used);
            used += 1;
        }
    }
    if count > 0 && used != grad.elements() {
        return Err(internal!(
            "Elements of backprop_val_grad aren't all propagated. Num elements:{}, used: {used}",
            grad.elements()
        ));
    }
    let mut back = Tensor::zeros_of(grad.dtype(), [count])?;
    for_units!(grad.dtype(), E => spread(E::of(&grad)?, &sources, E::of_mut(&mut back)?));
    Ok(outputs![back])
}

fn spread<E: Unit>(grad: &[E], sources: &[Option<usize>], back: &mut [E]) {
    for (to, source) in back.iter_mut().zip(sources) {
        if let Some(source) = source {
            *to = grad[*source].clone();
        }
    }
}

fn check_grad(grad: &Tensor, input: &Tensor, start: &Tensor, output: &Tensor) -> Result<()> {
    let (&[count, rank], &[kept, kept_rank]) = (input.shape().dims(), output.shape().dims()) else {
        return Err(invalid!(
            "Input and output indices should be matrices but received shapes: {} and {}",
            input.shape(),
            output.shape()
        ));
    };
    if grad.shape().rank() != 1 {
        return Err(invalid!("Input backprop_val_grad should be a vector but received shape: {}", grad.shape()));
    }
    if rank != kept_rank {
        return Err(invalid!("The input and output should have the same ndims: got: {rank} and {kept_rank}"));
    }
    if kept > count {
        return Err(invalid!(
            "# rows of output_indices should be not greater than of input_indices, got {kept} and {count}"
        ));
    }
    if grad.elements() != kept {
        return Err(invalid!(
            "# elements of backprop_val_grad and # rows of output_indices should match (#nnz of sum): got {} and {kept}",
            grad.elements()
        ));
    }
    if start.shape().rank() != 1 {
        return Err(invalid!("The input_start should be a vector but received shape {}", start.shape()));
    }
    if start.elements() != rank {
        return Err(invalid!(
            "Expected input_start to be a vector of length {rank} but got length {}",
            start.elements()
        ));
    }
    Ok(())
}

//! Sparse matrices from and to dense tensors and sparse tensors.

use super::for_fields;
use super::matrix::{Builder, Csr, Number, sizes};
use crate::array::gather_nd::{gather_nd, run_gather_nd};
use crate::sparse::coo::{Coo, index_tensor};
use graph::{Node, Output, ShapeQuery};
use op::shapes::{scalar, unknown};
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, binary, grads, many, outputs, unary};
use status::{Result, invalid};
use tensor::{Complex32, Complex64, DType, Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "DenseToCSRSparseMatrix(dense_input: T, indices: int64) -> sparse_output: variant; \
              T: {float, double, complex64, complex128}",
        shape: scalar,
        grad: Grad::Rule(from_dense_rule),
        kernel: from_dense_kernel,
        facts: PLAIN,
    },
    Op {
        def: "CSRSparseMatrixToDense(sparse_input: variant) -> dense_output: type; \
              type: {float, double, complex64, complex128}",
        shape: unknown,
        grad: Grad::Rule(to_dense_rule),
        kernel: to_dense_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseTensorToCSRSparseMatrix(indices: int64, values: T, dense_shape: int64) -> sparse_matrix: variant; \
              T: {float, double, complex64, complex128}",
        shape: scalar,
        grad: Grad::Rule(from_sparse_rule),
        kernel: from_sparse_kernel,
        facts: PLAIN,
    },
    Op {
        def: "CSRSparseMatrixToSparseTensor(sparse_matrix: variant) -> indices: int64, values: type, \
              dense_shape: int64; type: {float, double, complex64, complex128}",
        shape: sparse_shape,
        grad: Grad::Rules(to_sparse_rule),
        kernel: to_sparse_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseMatrixZeros(dense_shape: int64) -> sparse_matrix: variant; \
              type: {float, double, complex64, complex128}",
        shape: scalar,
        grad: Grad::Stop,
        kernel: zeros_kernel,
        facts: PLAIN,
    },
];

/// The matrix of the elements of `dense` at these indices, which are sorted.
pub fn dense_to_csr_sparse_matrix(dense: &Output, indices: &Output) -> Output {
    dense.scope().op("DenseToCSRSparseMatrix").input(dense).input(indices).output()
}

/// A dense tensor with the elements of a matrix.
pub fn csr_sparse_matrix_to_dense(matrix: &Output, dtype: DType) -> Output {
    matrix.scope().op("CSRSparseMatrixToDense").input(matrix).attr("type", dtype).output()
}

/// The matrix with these values at sorted indices.
pub fn sparse_tensor_to_csr_sparse_matrix(indices: &Output, values: &Output, dense_shape: &Output) -> Output {
    let builder = values.scope().op("SparseTensorToCSRSparseMatrix");
    builder.input(indices).input(values).input(dense_shape).output()
}

/// Indices, values and dense shape of a matrix.
pub fn csr_sparse_matrix_to_sparse_tensor(matrix: &Output, dtype: DType) -> [Output; 3] {
    let node = matrix.scope().op("CSRSparseMatrixToSparseTensor").input(matrix).attr("type", dtype).node();
    [node.output(0), node.output(1), node.output(2)]
}

fn sparse_shape(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(2), PartialShape::of_rank(1), PartialShape::of_rank(1)])
}

fn from_dense_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![csr_sparse_matrix_to_dense(dy, op.attr_type("T")?), NoGradient])
}

fn to_dense_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [indices, _, shape] = csr_sparse_matrix_to_sparse_tensor(&op.input(0).seen_from(dy.scope()), dy.dtype());
    Ok(grads![sparse_tensor_to_csr_sparse_matrix(&indices, &gather_nd(dy, &indices), &shape)])
}

fn from_sparse_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [_, values, _] = csr_sparse_matrix_to_sparse_tensor(dy, op.attr_type("T")?);
    Ok(grads![NoGradient, values, NoGradient])
}

fn to_sparse_rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let matrix = |values: &Output| {
        let (indices, shape) = (op.output(0).seen_from(values.scope()), op.output(2));
        sparse_tensor_to_csr_sparse_matrix(&indices, values, &shape)
    };
    Ok(grads![dys.get(1).and_then(Option::as_ref).map(matrix)])
}

fn from_dense_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let name = setup.name().to_string();
    for_fields!(setup, setup.dtype("T")?, T => {
        Ok(binary(move |ctx, dense, indices| from_dense::<T>(ctx, &dense, &indices, &name)))
    })
}

fn from_dense<T: Number>(ctx: &Ctx<'_>, dense: &Tensor, indices: &Tensor, node: &str) -> Result<Tensor> {
    let rank = dense.shape().rank();
    if rank != 2 && rank != 3 {
        return Err(invalid!("params must have rank == 2 or 3; but saw shape: {}", dense.shape()));
    }
    if indices.shape().rank() != 2 {
        return Err(invalid!("indices must be a matrix, but saw shape: {}", indices.shape()));
    }
    if indices.shape()[1] != rank {
        return Err(invalid!(
            "indices.shape[1] must be equal to the rank of params, but saw: {} vs. {rank}",
            indices.shape()[1]
        ));
    }
    let values = run_gather_nd(ctx, dense, indices, false, node)?;
    from_indices(indices.values::<i64>()?, values, &dense.shape().to_i64())?.into_tensor()
}

/// The matrix with values at these indices, one row of them for each value.
fn from_indices(indices: &[i64], values: Tensor, dims: &[i64]) -> Result<Csr> {
    let (batches, rows, columns) = sizes(dims)?;
    if values.elements() > i32::MAX as usize {
        return Err(invalid!(
            "values number of elements must be <= Int32Max, but the input value is {}",
            values.elements()
        ));
    }
    let mut batch_pointers = Tensor::zeros::<i32>([batches + 1])?;
    let mut row_pointers = Tensor::zeros::<i32>([batches * (rows + 1)])?;
    let mut column_indices = Tensor::zeros::<i32>([values.elements()])?;
    let (ends, pointers) = (batch_pointers.values_mut::<i32>()?, row_pointers.values_mut::<i32>()?);
    let mut last = 0;
    for (index, place) in indices.chunks_exact(dims.len()).zip(column_indices.values_mut::<i32>()?) {
        let batch = if index.len() == 3 { below(index[0], batches, "Batch")? } else { 0 };
        let row = below(index[index.len() - 2], rows, "Row")?;
        *place = below(index[index.len() - 1], columns, "Column")? as i32;
        if batch < last {
            return Err(invalid!("The indices of a CSRSparseMatrix must be sorted by batch"));
        }
        last = batch;
        ends[batch + 1] += 1;
        pointers[batch * (rows + 1) + row + 1] += 1;
    }
    add_up(ends);
    pointers.chunks_exact_mut(rows + 1).for_each(add_up);
    Csr::new([Tensor::vector(dims), batch_pointers, row_pointers, column_indices, values])
}

fn below(index: i64, limit: usize, what: &str) -> Result<usize> {
    let place = usize::try_from(index).ok().filter(|&place| place < limit);
    place.ok_or_else(|| invalid!("{what} index {index} is outside of valid range [0, {limit})"))
}

fn add_up(counts: &mut [i32]) {
    let mut sum = 0;
    for count in counts {
        sum += *count;
        *count = sum;
    }
}

fn to_dense_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("type")?;
    for_fields!(setup, dtype, T => Ok(unary(move |_, input| {
        let csr = Csr::take(&input, 0)?;
        if csr.dtype() != dtype {
            return Err(invalid!("Asked for a CSRSparseMatrix of type {dtype} but saw dtype: {}", csr.dtype()));
        }
        dense::<T>(&csr)
    })))
}

fn dense<T: Element>(csr: &Csr) -> Result<Tensor> {
    let mut out = Tensor::zeros::<T>(csr.shape()?)?;
    let table = out.values_mut::<T>()?;
    for batch in 0..csr.batches {
        let part = csr.part::<T>(batch)?;
        for row in 0..csr.rows {
            let start = (batch * csr.rows + row) * csr.columns;
            part.entries(row).for_each(|(column, value)| table[start + column] = value);
        }
    }
    Ok(out)
}

fn from_sparse_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_fields!(setup, setup.dtype("T")?, T => Ok(many(|_, mut inputs| {
        let (indices, values, shape) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let coo = Coo::new(&indices, &values, &shape)?;
        coo.check_inside()?;
        Ok(outputs![from_indices(coo.indices, values.clone(), coo.dims)?.into_tensor()?])
    })))
}

fn to_sparse_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("type")?;
    for_fields!(setup, dtype, T => Ok(many(move |_, mut inputs| {
        let csr = Csr::take(&inputs.tensor(0)?, 0)?;
        if csr.dtype() != dtype {
            return Err(invalid!("Expected a CSRSparseMatrix of type {dtype} but saw type: {}", csr.dtype()));
        }
        sparse::<T>(&csr)
    })))
}

fn sparse<T: Element>(csr: &Csr) -> Result<Outputs> {
    let [_, _, values] = csr.tensors();
    let mut indices = Vec::with_capacity(values.elements() * csr.rank());
    for batch in 0..csr.batches {
        let part = csr.part::<T>(batch)?;
        for row in 0..csr.rows {
            for place in part.row(row) {
                if csr.rank() == 3 {
                    indices.push(batch as i64);
                }
                indices.extend([row as i64, part.columns[place].into()]);
            }
        }
    }
    let indices = index_tensor(&indices, values.elements(), csr.rank())?;
    Ok(outputs![indices, values.clone(), csr.dense_shape().clone()])
}

fn zeros_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("type")?;
    Ok(unary(move |_, shape| {
        if !(2..=3).contains(&shape.elements()) || shape.shape().rank() != 1 {
            return Err(invalid!(
                "sparse tensor must have rank == 2 or 3; but dense shape has {} entries",
                shape.elements()
            ));
        }
        zeros(dtype, shape.values::<i64>()?)?.into_tensor()
    }))
}

/// A matrix without values.
pub(crate) fn zeros(dtype: DType, dims: &[i64]) -> Result<Csr> {
    fn of<T: Element>(dims: &[i64]) -> Result<Csr> {
        Builder::<T>::new(dims)?.finish()
    }
    match dtype {
        DType::F32 => of::<f32>(dims),
        DType::F64 => of::<f64>(dims),
        DType::C64 => of::<Complex32>(dims),
        _ => of::<Complex64>(dims),
    }
}

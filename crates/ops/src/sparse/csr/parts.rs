//! The parts of a sparse matrix: CSRSparseMatrixComponents, SparseMatrixNNZ.

use super::for_fields;
use super::matrix::Csr;
use graph::ShapeQuery;
use op::shapes::unknown;
use op::{Grad, Kernel, Op, Outputs, PLAIN, Setup, many, outputs, unary};
use status::{Result, invalid};
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "CSRSparseMatrixComponents(csr_sparse_matrix: variant, index: int32) -> row_ptrs: int32, col_inds: int32, \
              values: type; type: {float, double, complex64, complex128}",
        shape: vectors,
        grad: Grad::Unknown,
        kernel: components_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseMatrixNNZ(sparse_matrix: variant) -> nnz: int32",
        shape: unknown,
        grad: Grad::Stop,
        kernel: nnz_kernel,
        facts: PLAIN,
    },
];

fn vectors(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(1); query.outputs])
}

fn components_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("type")?;
    for_fields!(setup, dtype, T => Ok(many(move |_, mut inputs| {
        let csr = Csr::take(&inputs.tensor(0)?, 0)?;
        if csr.dtype() != dtype {
            return Err(invalid!("dtype of input is not equal to 'type': {} vs. {dtype}", csr.dtype()));
        }
        components(&csr, &inputs.tensor(1)?)
    })))
}

fn components(csr: &Csr, index: &Tensor) -> Result<Outputs> {
    if index.shape().rank() != 0 {
        return Err(invalid!("index should be a scalar, but saw: {index:?}"));
    }
    let index = index.to_scalar::<i32>()?;
    let batch = usize::try_from(index).ok().filter(|&batch| batch < csr.batches);
    let batch = batch.ok_or_else(|| invalid!("index ({index}) not in [0, {})", csr.batches))?;
    let ([pointers, columns, values], range) = (csr.tensors(), csr.batch(batch)?);
    Ok(outputs![
        pointers.slice_elements(batch * (csr.rows + 1), [csr.rows + 1])?,
        columns.slice_elements(range.start, [range.len()])?,
        values.slice_elements(range.start, [range.len()])?,
    ])
}

fn nnz_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, input| {
        let csr = Csr::take(&input, 0)?;
        let counts = (0..csr.batches).map(|batch| Ok(csr.batch(batch)?.len() as i32)).collect::<Result<Vec<i32>>>()?;
        match csr.rank() {
            2 => Ok(Tensor::scalar(counts[0])),
            _ => Ok(Tensor::vector(&counts)),
        }
    }))
}

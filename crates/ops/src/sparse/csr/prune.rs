//! Gradients of sparse matrices have the places of the matrix they belong to.

use super::convert::{csr_sparse_matrix_to_sparse_tensor, sparse_tensor_to_csr_sparse_matrix};
use crate::array::gather_nd::gather_nd;
use crate::array::nodes;
use graph::Output;
use tensor::{DType, Tensor};

/// The values of `matrix` at the places of `pattern`; places that `matrix` does not have are left out.
pub(super) fn prune(matrix: &Output, pattern: &Output, dtype: DType) -> Output {
    let [indices, values, shape] = csr_sparse_matrix_to_sparse_tensor(matrix, dtype);
    let [wanted, _, _] = csr_sparse_matrix_to_sparse_tensor(pattern, dtype);
    let (places, wanted) = (flat(&indices, &shape), flat(&wanted, &shape));
    let scope = matrix.scope();
    let rows = (nodes::expand(&places, 0), nodes::expand(&wanted, 0));
    let found = scope.op("LowerBound").input(&rows.0).input(&rows.1).attr("out_type", DType::I64).output();
    let found = nodes::flat(&found);
    // One place more, which is never wanted: for what is greater than all.
    let end = nodes::constant(scope, Tensor::vector(&[-1i64]));
    let met = gather(&nodes::concat(&[&places, &end]), &found);
    let kept = nodes::one("Where", &nodes::pair("Equal", &met, &wanted));
    let kept = nodes::expand(&nodes::flat(&gather_nd(&found, &kept)), -1);
    sparse_tensor_to_csr_sparse_matrix(&gather_nd(&indices, &kept), &gather_nd(&values, &kept), &shape)
}

/// Indices as places in a vector of all elements.
fn flat(indices: &Output, shape: &Output) -> Output {
    let all = nodes::constant(indices.scope(), Tensor::vector(&[-1i64]));
    let node = indices.scope().op("SparseReshape").input(indices).input(shape).input(&all).node();
    nodes::flat(&node.output(0))
}

fn gather(params: &Output, indices: &Output) -> Output {
    gather_nd(params, &nodes::expand(indices, -1))
}

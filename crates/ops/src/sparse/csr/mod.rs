//! Sparse matrices by compressed rows, which are values of a variant type.

mod matrix;
mod prune;

pub(crate) mod add;
pub(crate) mod cholesky;
pub(crate) mod convert;
pub(crate) mod dense_product;
pub(crate) mod ordering;
pub(crate) mod parts;
pub(crate) mod softmax;
pub(crate) mod sparse_product;
pub(crate) mod transpose;

pub(crate) use add::sum;
pub use add::{sparse_matrix_add, sparse_matrix_mul};
pub(crate) use convert::zeros;
pub use convert::{
    csr_sparse_matrix_to_dense, csr_sparse_matrix_to_sparse_tensor, dense_to_csr_sparse_matrix,
    sparse_tensor_to_csr_sparse_matrix,
};
pub use matrix::Csr;
pub(crate) use matrix::TYPE_NAME;
pub use softmax::sparse_matrix_softmax;
pub(crate) use transpose::conjugated;
pub use transpose::sparse_matrix_transpose;

/// `for_fields!(setup, attribute, T => kernel)`: for the types that such a matrix can have.
macro_rules! for_fields {
    ($setup:expr, $dtype:expr, $T:ident => $kernel:expr) => {
        for_types!($setup, $dtype, [f32, f64, tensor::Complex32, tensor::Complex64], $T => $kernel)
    };
}
use for_fields;

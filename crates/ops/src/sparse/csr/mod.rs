//! Sparse matrices by compressed rows, which are values of a variant type.

mod matrix;
mod prune;

pub mod add;
pub mod cholesky;
pub mod convert;
pub mod dense_product;
pub mod ordering;
pub mod parts;
pub mod softmax;
pub mod sparse_product;
pub mod transpose;

pub(crate) use add::sum;
pub(crate) use convert::zeros;
pub use matrix::Csr;
pub(crate) use matrix::TYPE_NAME;
pub(crate) use transpose::conjugated;

/// `for_fields!(setup, attribute, T => kernel)`: for the types that such a matrix can have.
macro_rules! for_fields {
    ($setup:expr, $dtype:expr, $T:ident => $kernel:expr) => {
        for_types!($setup, $dtype, [f32, f64, tensor::Complex32, tensor::Complex64], $T => $kernel)
    };
}
use for_fields;

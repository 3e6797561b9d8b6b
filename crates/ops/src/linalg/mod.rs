//! Linear algebra: factorisations, solvers, functions of matrices, and sums of products.

#[macro_use]
mod batch;
mod einsum_kernel;
mod nodes;

pub(crate) mod banded_triangular_solve;
pub(crate) mod cholesky;
pub(crate) mod cross;
pub(crate) mod determinant;
pub(crate) mod eig;
pub(crate) mod einsum;
pub(crate) mod functions;
pub(crate) mod inverse;
pub(crate) mod lu;
pub(crate) mod qr;
pub(crate) mod solve_ls;
pub(crate) mod svd;
pub(crate) mod triangular_solve;
pub(crate) mod tridiagonal;

pub use self::banded_triangular_solve::banded_triangular_solve;
pub use self::cholesky::cholesky;
pub use self::cross::cross;
pub use self::determinant::{log_matrix_determinant, matrix_determinant};
pub use self::eig::{eig, self_adjoint_eig};
pub use self::einsum::einsum;
pub use self::functions::{matrix_exponential, matrix_logarithm, matrix_square_root};
pub use self::inverse::{matrix_inverse, matrix_solve};
pub use self::lu::lu;
pub use self::qr::qr;
pub use self::solve_ls::matrix_solve_ls;
pub use self::svd::svd;
pub use self::triangular_solve::triangular_solve;
pub use self::tridiagonal::{tridiagonal_matmul, tridiagonal_solve};

pub(crate) use nodes::transposed as transposed_matrix;
use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    banded_triangular_solve::OPS,
    cholesky::OPS,
    cross::OPS,
    determinant::OPS,
    eig::OPS,
    einsum::OPS,
    functions::OPS,
    inverse::OPS,
    lu::OPS,
    qr::OPS,
    solve_ls::OPS,
    svd::OPS,
    triangular_solve::OPS,
    tridiagonal::OPS,
];

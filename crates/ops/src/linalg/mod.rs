//! Linear algebra: factorisations, solvers, functions of matrices, and sums of products.

#[macro_use]
mod batch;
mod einsum_kernel;
mod nodes;

pub mod banded_triangular_solve;
pub mod cholesky;
pub mod cross;
pub mod determinant;
pub mod eig;
pub mod einsum;
pub mod functions;
pub mod inverse;
pub mod lu;
pub mod qr;
pub mod solve_ls;
pub mod svd;
pub mod triangular_solve;
pub mod tridiagonal;

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

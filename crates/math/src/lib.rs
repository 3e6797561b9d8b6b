//! Numeric kernels on slices, and the only crate with SIMD code.
//!
//! The crate knows slices and sizes: no tensors, no graphs. Each kernel has a portable version; where AVX2 or AVX-512
//! is detected at run time a vectorised version is used instead (`cpu.rs`), and tests compare the two. Loops are
//! split over a [`Pool`] of threads, and the way they are split depends on sizes only, so results do not depend on
//! the thread count.
//!
//! ```
//! use flowgrid_math::Pool;
//! use flowgrid_math::gemm::{Matrix, matmul};
//!
//! let pool = Pool::new(2);
//! let (lhs, rhs) = ([1.0f32, 2.0, 3.0, 4.0], [1.0f32, 0.0, 0.0, 1.0]);
//! let mut product = [0.0f32; 4];
//! matmul(&pool, Matrix::new(&lhs, 2, 2), Matrix::new(&rhs, 2, 2), &mut product);
//! assert_eq!(product, lhs);
//! ```

pub mod batch_norm;
pub mod bias;
pub mod conv;
pub mod cpu;
pub mod elementwise;
pub mod fft;
pub mod function;
pub mod fused;
pub mod gemm;
mod isotonic;
pub mod lanes;
pub mod linalg;
pub mod lrn;
pub mod optimizer;
pub mod parallel;
pub mod philox;
pub mod pool;
pub mod pool_ties;
pub mod pooling;
pub mod reduce;
pub mod rows;
mod scatter;
mod softmax;
mod transpose;

pub use isotonic::isotonic;
pub use scatter::{for_each_row, gather, scatter};
pub use softmax::{Logit, log_softmax, log_sum_exp, softmax, softmax_cross_entropy, sparse_softmax_cross_entropy};
pub use transpose::{Permutation, transpose, transpose_clone};

pub use pool::Pool;

#[cfg(test)]
mod tests;

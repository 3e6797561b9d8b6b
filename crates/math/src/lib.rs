//! I see slices and sizes; all SIMD is mine.

pub mod batch_norm;
pub mod bias;
pub mod conv;
pub mod cpu;
pub mod elementwise;
pub mod function;
pub mod fused;
pub mod gemm;
pub mod isotonic;
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
pub mod scatter;
pub mod softmax;
pub mod transpose;

pub use pool::Pool;

#[cfg(test)]
mod tests;

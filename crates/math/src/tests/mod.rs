//! Fast paths against their plain twins, and functions against what TensorFlow answers.

mod elementwise;
mod function;
mod gemm;

//! Fast paths against their plain twins, and functions against what TensorFlow answers.

mod broadcast;
mod conv;
mod elementwise;
mod fft;
mod function;
mod fused;
mod gemm;
mod isotonic;
mod philox;
mod pool;
mod pooling;
mod reduce;
mod softmax;
mod transpose;

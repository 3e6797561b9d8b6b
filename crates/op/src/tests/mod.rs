//! Tests of the types that kernels and executors share.

mod tensor_stream;

//! Fast loops against their plain twins.

mod gemm;

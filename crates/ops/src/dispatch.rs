//! Selects a generic kernel by the element type of a node.

use status::{Error, internal};
use tensor::DType;

/// TensorFlow's error for a kernel that gets another type than its node declares.
pub(crate) fn undeclared(node: &str, found: DType, declared: DType) -> Error {
    internal!("Output 0 of type {found} does not match declared output type {declared} for node {{{{node {node}}}}}")
}

/// `for_types!(setup, dtype, [f32, f64], T => kernel)`: the kernel with `T` set to the Rust type of
/// `dtype`, or the error that there is none.
macro_rules! for_types {
    ($setup:expr, $dtype:expr, [$($rust:ty),* $(,)?], $T:ident => $kernel:expr) => {
        match $dtype {
            $(dtype if dtype == <$rust as tensor::Element>::DTYPE => {
                #[allow(dead_code)]
                type $T = $rust;
                $kernel
            })*
            _ => Err($setup.no_kernel()),
        }
    };
}

/// half, bfloat16, float, double.
macro_rules! for_floats {
    ($setup:expr, $dtype:expr, $T:ident => $kernel:expr) => {
        for_types!($setup, $dtype, [f32, f64, tensor::f16, tensor::bf16], $T => $kernel)
    };
}

/// All real numbers.
macro_rules! for_reals {
    ($setup:expr, $dtype:expr, $T:ident => $kernel:expr) => {
        for_types!(
            $setup, $dtype,
            [f32, f64, tensor::f16, tensor::bf16, i8, i16, i32, i64, u8, u16, u32, u64],
            $T => $kernel
        )
    };
}

/// All integers.
macro_rules! for_integers {
    ($setup:expr, $dtype:expr, $T:ident => $kernel:expr) => {
        for_types!($setup, $dtype, [i8, i16, i32, i64, u8, u16, u32, u64], $T => $kernel)
    };
}

/// All real and complex numbers.
macro_rules! for_numbers {
    ($setup:expr, $dtype:expr, $T:ident => $kernel:expr) => {
        for_types!(
            $setup, $dtype,
            [f32, f64, tensor::f16, tensor::bf16, i8, i16, i32, i64, u8, u16, u32, u64,
             tensor::Complex32, tensor::Complex64],
            $T => $kernel
        )
    };
}

/// All plain elements, bool included. Quantized types are not matched.
macro_rules! for_plain {
    ($setup:expr, $dtype:expr, $T:ident => $kernel:expr) => {
        for_types!(
            $setup, $dtype,
            [f32, f64, tensor::f16, tensor::bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool,
             tensor::Complex32, tensor::Complex64],
            $T => $kernel
        )
    };
}

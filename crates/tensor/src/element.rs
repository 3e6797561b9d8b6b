//! The Rust types through which the elements of a tensor can be read as a slice.

use crate::{Complex32, Complex64, DType, bf16, f16};

/// A plain element type: every bit pattern that a buffer may hold is a valid value.
///
/// Quantized integers are stored as, and read through, the integer of their width.
pub trait Element: Copy + Default + PartialEq + Send + Sync + std::fmt::Debug + 'static + sealed::Sealed {
    /// The type of a tensor that is built from a slice of this type.
    const DTYPE: DType;
    /// Further types with the same storage, such as quantized integers.
    const ALSO: &'static [DType];

    /// True if a tensor of type `dtype` stores its elements as this Rust type.
    fn stores(dtype: DType) -> bool {
        dtype == Self::DTYPE || Self::ALSO.contains(&dtype)
    }
}

mod sealed {
    /// Restricts `Element` to the types below: `buffer.rs` relies on all-zero bytes being valid for each of them.
    pub trait Sealed {}
}

macro_rules! elements {
    ($($rust:ty: $dtype:ident, [$($also:ident),*];)*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
            const ALSO: &'static [DType] = &[$(DType::$also),*];
        }
    )*};
}

elements! {
    f32: F32, [];
    f64: F64, [];
    f16: F16, [];
    bf16: BF16, [];
    i8: I8, [QI8, I4];
    i16: I16, [QI16];
    i32: I32, [QI32];
    i64: I64, [];
    u8: U8, [QU8, U4, F8E5M2, F8E4M3FN];
    u16: U16, [QU16];
    u32: U32, [];
    u64: U64, [];
    bool: BOOL, [];
    Complex32: C64, [];
    Complex64: C128, [];
}

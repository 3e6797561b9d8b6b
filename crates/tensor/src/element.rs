//! The Rust types whose slices a tensor hands out.

use crate::{Complex32, Complex64, DType, bf16, f16};

/// A plain element: any bit pattern the buffer may hold is a value of it.
///
/// Quantized integers are stored as, and read through, the integer of their width.
pub trait Element: Copy + Default + PartialEq + Send + Sync + std::fmt::Debug + 'static + sealed::Sealed {
    /// The type a tensor made from a slice of these gets.
    const DTYPE: DType;
    /// Other types stored the same way.
    const ALSO: &'static [DType];

    /// Whether a tensor of type `dtype` stores these.
    fn stores(dtype: DType) -> bool {
        dtype == Self::DTYPE || Self::ALSO.contains(&dtype)
    }
}

mod sealed {
    /// Keeps `Element` to the types below: `buffer.rs` relies on every one being valid as zero bytes.
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

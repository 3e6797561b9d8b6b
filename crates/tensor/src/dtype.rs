//! TensorFlow's element types, identified by their numbers on the wire.

use std::fmt;

/// An element type, stored as TensorFlow's `DataType` number, so that types without a kernel here still pass through
/// a graph unchanged.
///
/// The number of a reference type is the number of its base type plus 100.
///
/// # Examples
///
/// ```
/// use flowgrid_tensor::DType;
///
/// assert_eq!(DType::from_name("float"), Some(DType::F32));
/// assert_eq!(DType::F32.proto_name(), "DT_FLOAT");
/// assert!(DType::F32.is_floating() && DType::F32.size() == 4);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DType(i32);

const REF: i32 = 100;

macro_rules! dtypes {
    ($($name:ident = $number:literal, $text:literal, $size:literal;)*) => {
        #[allow(missing_docs)] // the names are the documentation
        impl DType {
            $(pub const $name: DType = DType($number);)*

            /// All types that a tensor can hold.
            pub const ALL: &[DType] = &[$(DType::$name),*];

            /// TensorFlow's short name: `float`, `int32`, `string`.
            fn base_name(self) -> Option<&'static str> {
                match self.0 { $($number => Some($text),)* _ => None }
            }

            /// Bytes of one element; zero for types that are not plain numbers.
            pub fn size(self) -> usize {
                match self.base().0 { $($number => $size,)* _ => 0 }
            }
        }
    };
}

dtypes! {
    F32 = 1, "float", 4;
    F64 = 2, "double", 8;
    I32 = 3, "int32", 4;
    U8 = 4, "uint8", 1;
    I16 = 5, "int16", 2;
    I8 = 6, "int8", 1;
    STRING = 7, "string", 0;
    C64 = 8, "complex64", 8;
    I64 = 9, "int64", 8;
    BOOL = 10, "bool", 1;
    QI8 = 11, "qint8", 1;
    QU8 = 12, "quint8", 1;
    QI32 = 13, "qint32", 4;
    BF16 = 14, "bfloat16", 2;
    QI16 = 15, "qint16", 2;
    QU16 = 16, "quint16", 2;
    U16 = 17, "uint16", 2;
    C128 = 18, "complex128", 16;
    F16 = 19, "half", 2;
    RESOURCE = 20, "resource", 0;
    VARIANT = 21, "variant", 0;
    U32 = 22, "uint32", 4;
    U64 = 23, "uint64", 8;
    F8E5M2 = 24, "float8_e5m2", 1;
    F8E4M3FN = 25, "float8_e4m3fn", 1;
    I4 = 29, "int4", 1;
    U4 = 30, "uint4", 1;
}

impl DType {
    /// The number 0: an attribute that was never set.
    pub const INVALID: DType = DType(0);

    /// The type with this number, whether or not it is defined.
    pub const fn from_number(number: i32) -> DType {
        DType(number)
    }

    /// The number on the wire.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// The type with TensorFlow's short name, `float` or `float_ref`.
    pub fn from_name(name: &str) -> Option<DType> {
        if let Some(base) = name.strip_suffix("_ref") {
            return DType::from_name(base).map(DType::to_ref);
        }
        DType::ALL.iter().copied().find(|dtype| dtype.base_name() == Some(name))
    }

    /// Whether values of this type are references to variables.
    pub const fn is_ref(self) -> bool {
        self.0 > REF
    }

    /// The reference type to this type.
    pub const fn to_ref(self) -> DType {
        if self.is_ref() { self } else { DType(self.0 + REF) }
    }

    /// The type without the reference.
    pub const fn base(self) -> DType {
        if self.is_ref() { DType(self.0 - REF) } else { self }
    }

    /// Whether elements are plain numbers of `size()` bytes.
    pub fn is_plain(self) -> bool {
        self.size() > 0
    }

    /// True for half, bfloat16, float and double.
    pub fn is_floating(self) -> bool {
        matches!(self.base(), DType::F32 | DType::F64 | DType::F16 | DType::BF16)
    }

    /// True for complex64 and complex128.
    pub fn is_complex(self) -> bool {
        matches!(self.base(), DType::C64 | DType::C128)
    }

    /// True for signed and unsigned integers that are not quantized.
    pub fn is_integer(self) -> bool {
        use DType as D;
        matches!(self.base(), D::I8 | D::I16 | D::I32 | D::I64 | D::U8 | D::U16 | D::U32 | D::U64 | D::I4 | D::U4)
    }

    /// True for the quantized integers.
    pub fn is_quantized(self) -> bool {
        matches!(self.base(), DType::QI8 | DType::QU8 | DType::QI16 | DType::QU16 | DType::QI32)
    }

    /// The name used in attribute messages: `DT_FLOAT`, `DT_FLOAT_REF`.
    pub fn proto_name(self) -> String {
        format!("DT_{}", self.to_string().to_uppercase())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.base().base_name() {
            Some(name) if self.is_ref() => write!(f, "{name}_ref"),
            Some(name) => f.write_str(name),
            None if self.0 == 0 => f.write_str("INVALID"),
            None => write!(f, "unknown dtype enum ({})", self.0),
        }
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

//! 8-bit floats, as Cast reads and writes them.

use tensor::DType;

/// How a byte is divided into exponent and fraction.
#[derive(Clone, Copy)]
pub(super) struct Float8 {
    /// Bits of the fraction.
    fraction: u32,
    /// The bias of the exponent.
    bias: i32,
    /// The largest number.
    largest: u8,
    /// The code of values that are larger than that.
    overflow: u8,
    /// Not a number.
    nan: u8,
}

/// Five bits of exponent and two of fraction, with infinities.
pub(super) const E5M2: Float8 = Float8 { fraction: 2, bias: 15, largest: 0x7b, overflow: 0x7c, nan: 0x7e };

/// Four bits of exponent and three of fraction, without infinities: values that are too large become NaN.
pub(super) const E4M3FN: Float8 = Float8 { fraction: 3, bias: 7, largest: 0x7e, overflow: 0x7f, nan: 0x7f };

/// Whether a type is one of these.
pub(super) fn is_float8(dtype: DType) -> bool {
    matches!(dtype, DType::F8E5M2 | DType::F8E4M3FN)
}

impl Float8 {
    /// The nearest of these numbers, the even one of two.
    #[inline(always)]
    pub(super) fn round(self, x: f64) -> u8 {
        let (sign, bits) = ((x.to_bits() >> 56) as u8 & 0x80, x.to_bits() & (u64::MAX >> 1));
        // Numbers below the lowest exponent keep it and lose digits instead.
        let exponent = ((bits >> 52) as i32 - 1023).max(1 - self.bias);
        let size = match exponent {
            _ if x.is_nan() => self.nan,
            17.. => self.overflow,
            _ => {
                let units = f64::from_bits(bits) * power_of_two(self.fraction as i32 - exponent);
                let size = ((exponent + self.bias - 1) << self.fraction) + units.round_ties_even() as i32;
                if size > i32::from(self.largest) { self.overflow } else { size as u8 }
            }
        };
        sign | size
    }

    /// The number that a byte is.
    #[inline(always)]
    pub(super) fn value(self, byte: u8) -> f32 {
        let size = byte & 0x7f;
        let exponent = i32::from(size >> self.fraction).max(1);
        let ones = i32::from(size) - ((exponent - 1) << self.fraction);
        let value = match size {
            _ if size <= self.largest => f64::from(ones) * power_of_two(exponent - self.bias - self.fraction as i32),
            _ if size == self.overflow && self.overflow != self.nan => f64::INFINITY,
            _ => f64::NAN,
        };
        (value as f32).copysign(if byte < 0x80 { 1.0 } else { -1.0 })
    }
}

/// Two to a power that is small enough for a double.
#[inline(always)]
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

//! Conversions between 16-bit floats and `f32`, without branches.

use half::{bf16, f16};

/// The same number as `f32`.
#[inline(always)]
pub fn f16_to_f32(x: f16) -> f32 {
    let bits = u32::from(x.to_bits());
    let sign = (bits & 0x8000) << 16;
    let shifted = (bits & 0x7fff) << 13;
    // Scaling rebuilds the exponent, and makes subnormals normal on the way.
    let scaled = (f32::from_bits(shifted) * f32::from_bits(0x7780_0000)).to_bits();
    let magnitude = if bits & 0x7c00 == 0x7c00 { shifted | 0x7f80_0000 } else { scaled };
    f32::from_bits(sign | magnitude)
}

/// The nearest `f16`, ties to even.
#[inline(always)]
pub fn f32_to_f16(x: f32) -> f16 {
    let bits = x.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    let rounded = magnitude.wrapping_add(0x0fff + ((magnitude >> 13) & 1)).wrapping_sub(0x3800_0000) >> 13;
    // Adding a half puts the last bit of a subnormal at the last bit of the sum, so the addition rounds.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let finite = if magnitude < 0x3880_0000 { subnormal } else { rounded };
    let finite = if magnitude >= 0x477f_f000 { 0x7c00 } else { finite };
    let quiet = 0x7e00 | ((magnitude >> 13) & 0x3ff);
    let all = if magnitude > 0x7f80_0000 { quiet } else { finite };
    f16::from_bits((sign | all) as u16)
}

/// The same number as `f32`.
#[inline(always)]
pub fn bf16_to_f32(x: bf16) -> f32 {
    f32::from_bits(u32::from(x.to_bits()) << 16)
}

/// The nearest `bf16`, ties to even.
#[inline(always)]
pub fn f32_to_bf16(x: f32) -> bf16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let quiet = (bits >> 16) | 0x40;
    bf16::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { quiet } else { rounded } as u16)
}

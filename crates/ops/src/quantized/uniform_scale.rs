//! Shared by the uniform ops: scales and zero points, of a whole tensor or one for each index of an axis.

use super::level::{Level, to_i32};
use crate::array::args::around;
use op::Setup;
use status::{Result, invalid};
use tensor::{DType, Shape, Tensor};

/// An error unless the scales and zero points fit the tensor: scalars, or vectors along the axis.
pub(crate) fn check_shapes(data: &Shape, scales: &Tensor, zero_points: &Tensor, axis: i64) -> Result<()> {
    let (scales, zero_points) = (scales.shape(), zero_points.shape());
    if scales != zero_points {
        return Err(invalid!(
            "scales and zero_points shape must be same, but given scales shape {scales} and zero_points shape \
             {zero_points}"
        ));
    }
    if axis < -1 || axis >= data.rank() as i64 {
        return Err(invalid!("quantization_axis must be -1 or in range [0, input.rank), but given {axis}"));
    }
    let Ok(place) = usize::try_from(axis) else {
        return match scales.rank() {
            0 => Ok(()),
            _ => Err(invalid!(
                "If quantization_axis is -1, scales and zero_points must be scalar tensors, but given scales shape \
                 {scales} and zero_points shape {zero_points}"
            )),
        };
    };
    match scales.dims() == [data[place]] {
        true => Ok(()),
        false => Err(invalid!(
            "If quantization_axis is not -1, scales and zero_points must be a tensor of rank 1 and the size must be \
             equal to the input.dim_size(quantization_axis), but given quantization_axis {axis}, scales shape \
             {scales} and zero_points shape {zero_points}"
        )),
    }
}

/// An error unless all scales are positive.
pub(crate) fn check_positive(what: &str, scales: &[&Tensor]) -> Result<()> {
    for scales in scales {
        if !scales.values::<f32>()?.iter().all(|&scale| scale > 0.0) {
            return Err(invalid!("{what} scales elements must be all positive."));
        }
    }
    Ok(())
}

/// The smallest and the largest integer in use.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    min: i32,
    max: i32,
}

impl Limits {
    /// All integers of 32 bits.
    pub const NONE: Limits = Limits { min: i32::MIN, max: i32::MAX };

    /// All integers of 8 bits.
    pub const BYTE: Limits = Limits { min: -128, max: 127 };

    /// Reads the attributes that begin with `prefix`.
    pub fn of(setup: &Setup<'_>, prefix: &str) -> Result<Limits> {
        let read = |end: &str| {
            let name = format!("{prefix}quantization_{end}_val");
            let value = setup.int(&name)?;
            i32::try_from(value).map_err(|_| invalid!("Attr {name} has value {value} out of range for an int32"))
        };
        Ok(Limits { min: read("min")?, max: read("max")? })
    }

    /// The closest integer in use.
    pub fn clamp(self, value: i32) -> i32 {
        value.min(self.max).max(self.min)
    }

    /// The integer of a real number, rounded half up.
    pub fn quantized(self, value: f32, inverse_scale: f32, zero_point: i32) -> i32 {
        self.clamp(to_i32((value * inverse_scale + 0.5).floor()).wrapping_add(zero_point))
    }
}

/// A positive real number as an integer of 31 bits and a power of two.
#[derive(Clone, Copy)]
pub(crate) struct Multiplier {
    factor: i32,
    shift: i32,
}

impl Multiplier {
    /// Rounds a real number.
    pub fn of(value: f64) -> Result<Multiplier> {
        if !value.is_finite() || value <= 0.0 {
            return Err(invalid!("double_multiplier must be a poisitive finite number. Given {value}"));
        }
        let (fraction, mut shift) = split(value);
        let one = 1_i64 << 31;
        let mut factor = (fraction * one as f64).round() as i64;
        if factor == one {
            factor /= 2;
            shift += 1;
        }
        Ok(match shift {
            ..-31 => Multiplier { factor: 0, shift: 0 },
            31.. => Multiplier { factor: i32::MAX, shift: 30 },
            _ => Multiplier { factor: factor as i32, shift },
        })
    }

    /// The product, rounded half up.
    pub fn multiply(self, value: i32) -> i32 {
        let shift = 31 - self.shift;
        let product = i64::from(value) * i64::from(self.factor);
        i32::saturated(product.wrapping_add(1 << (shift - 1)) >> shift)
    }
}

/// A positive number as a fraction from a half to one and the exponent of a power of two. The exponent of a number that
/// is not normal is smaller than any in use.
fn split(value: f64) -> (f64, i32) {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1022;
    (f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52), exponent)
}

/// Moves integers from one scale to another.
#[derive(Clone, Copy)]
pub(crate) struct Requantizer {
    /// The quotient of the scales.
    pub multiplier: Multiplier,
    /// The integer of zero before.
    pub from: i32,
    /// The integer of zero after.
    pub to: i32,
    /// The integers in use after.
    pub limits: Limits,
}

impl Requantizer {
    /// The integer in the new scale.
    pub fn apply(&self, value: i32) -> i32 {
        let moved = self.multiplier.multiply(value.wrapping_sub(self.from)).wrapping_add(self.to);
        self.limits.clamp(moved)
    }
}

/// The scales and zero points of a tensor.
#[derive(Clone, Copy)]
pub(crate) struct Scales<'a> {
    scales: &'a [f32],
    zero_points: &'a [i32],
}

impl<'a> Scales<'a> {
    /// Reads both tensors, whose shapes are equal.
    pub fn of(scales: &'a Tensor, zero_points: &'a Tensor) -> Result<Scales<'a>> {
        Ok(Scales { scales: scales.values()?, zero_points: zero_points.values()? })
    }

    /// The same scales with other zero points.
    pub fn with_zero_points(self, zero_points: &'a [i32]) -> Scales<'a> {
        Scales { zero_points, ..self }
    }

    /// The scale and the zero point of a channel; of all channels if there is only one.
    pub fn channel(&self, index: usize) -> (f32, i32) {
        let index = if self.scales.len() == 1 { 0 } else { index };
        (self.scales[index], self.zero_points[index])
    }
}

/// How many elements lie before, on and after an axis; -1 means that there is none.
pub(crate) fn runs(shape: &Shape, axis: i64) -> [usize; 3] {
    match usize::try_from(axis) {
        Ok(axis) => around(shape, axis),
        Err(_) => [1, 1, shape.elements()],
    }
}

/// Moves a tensor to other scales. The axis is that of the scales that are not scalars.
pub(crate) fn requantized<T: Level, U: Level>(
    input: &Tensor,
    dtype: DType,
    axis: i64,
    [from, to]: [Scales<'_>; 2],
    limits: Limits,
) -> Result<Tensor> {
    let [_, channels, after] = runs(input.shape(), axis);
    for scales in [from, to] {
        if scales.scales.len() != 1 && scales.scales.len() != channels {
            return Err(invalid!("scales and zero_points must match the quantization axis of {}", input.shape()));
        }
    }
    let channel = |index: usize| -> Result<Requantizer> {
        let ((from_scale, from), (to_scale, to)) = (from.channel(index), to.channel(index));
        Ok(Requantizer { multiplier: Multiplier::of(f64::from(from_scale) / f64::from(to_scale))?, from, to, limits })
    };
    let requantizers = (0..channels).map(channel).collect::<Result<Vec<_>>>()?;
    let mut out = Tensor::scratch_of(dtype, input.shape())?;
    let pairs = out.values_mut::<U>()?.chunks_mut(after.max(1)).zip(input.values::<T>()?.chunks(after.max(1)));
    for (index, (out, values)) in pairs.enumerate() {
        let requantizer = &requantizers[index % channels];
        for (out, &value) in out.iter_mut().zip(values) {
            *out = U::truncated(requantizer.apply(to_integer(value)).into());
        }
    }
    Ok(out)
}

/// The integer, as TensorFlow reads it: 32-bit integers by way of floats.
pub(crate) fn to_integer<T: Level>(value: T) -> i32 {
    to_i32(value.float())
}

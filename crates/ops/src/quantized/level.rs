//! Quantized integers, and the real numbers that they stand for.
//!
//! The integers of a type divide a range of real numbers into equal steps. TensorFlow has two ways to compute this:
//! one number at a time in double precision, and whole tensors in single precision. Their results differ in the last
//! bits, so each op uses the one that TensorFlow uses.

use std::marker::PhantomData;
use tensor::Element;

/// A quantized integer.
pub(crate) trait Level: Element + Ord {
    /// The smallest integer.
    const LOWEST: i64;
    /// The largest integer.
    const HIGHEST: i64;

    /// The integer.
    fn number(self) -> i64;

    /// The integer as a float. TensorFlow reads 32-bit quantized integers in no other way, so that their last bits are
    /// lost even where it computes with integers or doubles.
    fn float(self) -> f32 {
        self.number() as f32
    }

    /// The low bits of an integer.
    fn truncated(number: i64) -> Self;

    /// The closest integer of this type.
    fn saturated(number: i64) -> Self {
        Self::truncated(number.clamp(Self::LOWEST, Self::HIGHEST))
    }
}

macro_rules! levels {
    ($($integer:ty),*) => {$(
        impl Level for $integer {
            const LOWEST: i64 = <$integer>::MIN as i64;
            const HIGHEST: i64 = <$integer>::MAX as i64;

            fn number(self) -> i64 {
                self.into()
            }

            fn truncated(number: i64) -> $integer {
                number as $integer
            }
        }
    )*};
}

levels!(i8, u8, i16, u16, i32);

/// Calls a generic kernel function with the Rust type that stores a quantized type.
macro_rules! for_levels {
    ($setup:expr, $dtype:expr, [$($name:ident = $integer:ty),*], $T:ident => $kernel:expr) => {
        match $dtype {
            $(tensor::DType::$name => {
                type $T = $integer;
                $kernel
            })*
            _ => Err($setup.no_kernel()),
        }
    };
}

/// The difference between the largest and the smallest integer.
fn steps<T: Level>() -> f64 {
    (T::HIGHEST - T::LOWEST) as f64
}

/// A double as an integer, as processors convert it: what does not fit becomes the smallest integer.
pub(crate) fn to_i64(value: f64) -> i64 {
    let limit = 9_223_372_036_854_775_808.0;
    if (-limit..limit).contains(&value) { value as i64 } else { i64::MIN }
}

/// A float as an integer, as processors convert it: what does not fit becomes the smallest integer.
pub(crate) fn to_i32(value: f32) -> i32 {
    let limit = 2_147_483_648.0;
    if (-limit..limit).contains(&value) { value as i32 } else { i32::MIN }
}

/// The range of real numbers that the integers of a type stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    /// The real number of the smallest integer.
    pub min: f32,
    /// The real number of the largest integer.
    pub max: f32,
}

impl Range {
    /// The range from the negative to the positive of a number.
    pub fn symmetric(max: f32) -> Range {
        Range { min: -max, max }
    }

    /// The integer of a real number, which may lie outside the range.
    pub fn unclamped<T: Level>(self, value: f32) -> i64 {
        if self.min == self.max {
            return T::LOWEST;
        }
        let levels = steps::<T>() + 1.0;
        let scale = levels / (f64::from(self.max - self.min) * (levels / steps::<T>()));
        let offset = (f64::from(value) * scale).round() - (f64::from(self.min) * scale).round();
        to_i64(offset).wrapping_add(T::LOWEST)
    }

    /// The integer of a real number, or the first or the last if it lies outside the range.
    pub fn quantized<T: Level>(self, value: f32) -> T {
        T::saturated(self.unclamped::<T>(value))
    }

    /// The real number of an integer.
    pub fn real<T: Level>(self, value: T) -> f32 {
        if self.min == self.max {
            return self.min;
        }
        let levels = steps::<T>() + 1.0;
        let scale = f64::from(self.max - self.min) * (levels / steps::<T>()) / levels;
        let rounded = (self.min / scale as f32).round() * scale as f32;
        (f64::from(rounded) + (f64::from(value.float()) - T::LOWEST as f64) * scale) as f32
    }

    /// The distance between the real numbers of neighbouring integers.
    fn level<T: Level>(self) -> f32 {
        (self.max - self.min) / (T::HIGHEST - T::LOWEST) as f32
    }

    /// The range of the products of integers of two ranges.
    pub fn of_products<A: Level, B: Level, C: Level>(a: Range, b: Range) -> Range {
        let level = a.level::<A>() * b.level::<B>();
        Range { min: level * C::LOWEST as f32, max: level * C::HIGHEST as f32 }
    }
}

/// Computes the real numbers of whole tensors, in single precision.
pub(crate) struct Decoder<T> {
    offset: f32,
    scale: f32,
    integer: PhantomData<T>,
}

impl<T: Level> Decoder<T> {
    /// For integers of this range.
    pub fn new(range: Range) -> Decoder<T> {
        let scale = (f64::from(range.max - range.min) / steps::<T>()) as f32;
        let rounded = if range.max == range.min { range.min } else { (range.min / scale).round() * scale };
        Decoder { offset: rounded - T::LOWEST as f32 * scale, scale, integer: PhantomData }
    }

    /// The real number of an integer.
    pub fn real(&self, value: T) -> f32 {
        self.offset + value.float() * self.scale
    }
}

/// Computes the integers of whole tensors, in single precision.
pub(crate) struct Encoder<T> {
    offset: f32,
    scale: f32,
    integer: PhantomData<T>,
}

impl<T: Level> Encoder<T> {
    /// For integers of this range.
    pub fn new(range: Range) -> Encoder<T> {
        let scale = if range.max == range.min { 0.0 } else { (steps::<T>() / f64::from(range.max - range.min)) as f32 };
        Encoder { offset: (range.min * scale).round() - T::LOWEST as f32, scale, integer: PhantomData }
    }

    /// The integer of a real number.
    pub fn quantized(&self, value: f32) -> T {
        // The largest float below 2^31, because the largest 32-bit integer is not a float.
        let highest = (T::HIGHEST as f32).min(2_147_483_520.0);
        let level = (value * self.scale).round() - self.offset;
        let level = if level < T::LOWEST as f32 { T::LOWEST as f32 } else { level };
        T::truncated(to_i32(if highest < level { highest } else { level }).into())
    }
}

/// Computes 8-bit integers from 32-bit integers in fixed-point arithmetic.
pub(crate) struct Narrowing {
    factor: i64,
    offset: i64,
}

/// Bits after the binary point.
const POINT: u32 = 16;

impl Narrowing {
    /// From integers of one range to those of another.
    pub fn new(from: Range, to: Range) -> Narrowing {
        let one = f64::from(1_u32 << POINT);
        let (from_width, to_width) = (from.max - from.min, to.max - to.min);
        let inverse = if to_width == 0.0 { 0.0 } else { (255.0 / f64::from(to_width)) as f32 };
        let middle = (f64::from(from.min + from.max) / 2.0) as f32;
        let from_offset = to_i64(f64::from(middle * inverse * one as f32));
        let half = 1_i64 << (POINT - 1);
        if to_width == 0.0 {
            return Narrowing { factor: 0, offset: from_offset.wrapping_add(half) };
        }
        let factor = to_i64(255.0 * one * f64::from(from_width) / f64::from(to_width));
        let to_offset = to_i64((one * (f64::from(to.min) * 255.0) / f64::from(to_width)).round());
        Narrowing { factor, offset: from_offset.wrapping_sub(to_offset).wrapping_add(half) }
    }

    /// The integer in the new range.
    pub fn narrow(&self, value: i32) -> u8 {
        let scaled = ((value.float() as i64).wrapping_mul(self.factor) >> 32).wrapping_add(self.offset);
        u8::saturated(scaled >> POINT)
    }
}

/// Computes 32-bit integers from 8-bit integers.
pub(crate) struct Widening {
    zero: i64,
    factor: i32,
}

impl Widening {
    /// From integers of one range to those of another.
    pub fn new(from: Range, to: Range) -> Widening {
        let level = |code: u8| to.unclamped::<i32>(from.real(code));
        Widening { zero: level(0), factor: level(1).wrapping_sub(level(0)) as i32 }
    }

    /// The integer in the new range.
    pub fn widen(&self, value: u8) -> i32 {
        i32::saturated(self.zero.wrapping_add(i64::from(value).wrapping_mul(self.factor.into())))
    }
}

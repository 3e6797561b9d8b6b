//! Conversions between number types.

use super::float8::{E4M3FN, E5M2, is_float8};
use graph::{Node, Output};
use math::function::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use math::lanes::Map;
use op::shapes::unchanged;
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, grads, unary};
use status::{Result, unimplemented_op};
use tensor::{Complex, Complex32, Complex64, DType, Element, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Cast(x: SrcT) -> y: DstT; SrcT: type; DstT: type; Truncate: bool = false",
        shape: unchanged,
        grad: Grad::Rule(cast_rule),
        kernel: cast_kernel,
        facts: PLAIN,
    },
    Op {
        def: "_HostCast(x: SrcT) -> y: DstT; SrcT: type; DstT: type; Truncate: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: cast_kernel,
        facts: PLAIN,
    },
];

/// `x` as numbers of another type.
pub fn cast(x: &Output, dtype: DType) -> Output {
    if x.dtype() == dtype {
        return x.clone();
    }
    x.scope().op("Cast").input(x).attr("DstT", dtype).output()
}

fn cast_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let src = op.input(0).dtype();
    let is_continuous = |dtype: DType| dtype.is_floating() || dtype.is_complex();
    Ok(match is_continuous(src) && is_continuous(dy.dtype()) {
        true => grads![cast(dy, src)],
        false => grads![NoGradient],
    })
}

fn cast_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (src, dst) = (setup.dtype("SrcT")?, setup.dtype("DstT")?);
    if src == dst {
        return Ok(unary(|_, x| Ok(x)).free());
    }
    if let (true, Some(step)) = (setup.bool("Truncate")?, truncating(src, dst)) {
        return Ok(unary(step));
    }
    let convert = converter(src, dst)?;
    Ok(unary(move |ctx, x| convert(ctx, x)))
}

/// Turns tensors of one type into tensors of another.
pub(crate) type Converter = Box<dyn Fn(&Ctx<'_>, Tensor) -> Result<Tensor> + Send + Sync>;

/// One loop over a tensor, or none if only the name of the type changes.
type Step = fn(&Ctx<'_>, Tensor) -> Result<Tensor>;

/// A converter between any two types of numbers. Pairs that are seldom met go by way of a third type.
pub(crate) fn converter(src: DType, dst: DType) -> Result<Converter> {
    let unknown = || unimplemented_op!("Cast {src} to {dst} is not supported");
    let (mut at, end) = (storage(src), storage(dst));
    if is_float8(end) && !(at.is_floating() || is_float8(at)) {
        return Err(unknown());
    }
    let mut steps: Vec<Step> = Vec::new();
    while at != end {
        let next = if direct(at, end).is_some() { end } else { way(at, end).ok_or_else(unknown)? };
        steps.push(direct(at, next).ok_or_else(unknown)?);
        at = next;
    }
    if at.is_plain() { Ok(Box::new(move |ctx, x| run_steps(ctx, &steps, dst, x))) } else { Err(unknown()) }
}

fn run_steps(ctx: &Ctx<'_>, steps: &[Step], dst: DType, x: Tensor) -> Result<Tensor> {
    let mut x = match storage(x.dtype()) {
        own if own == x.dtype() => x,
        stored => x.retyped(stored)?,
    };
    for step in steps {
        x = step(ctx, x)?;
    }
    if x.dtype() == dst { Ok(x) } else { x.retyped(dst) }
}

/// Quantized integers are cast as the integers they are stored as.
fn storage(dtype: DType) -> DType {
    match dtype {
        DType::QI8 => DType::I8,
        DType::QU8 => DType::U8,
        DType::QI16 => DType::I16,
        DType::QU16 => DType::U16,
        DType::QI32 => DType::I32,
        other => other,
    }
}

/// The next type in a chain of casts from `src` to `dst`, for pairs without a loop of their own. Chains are finite:
/// they go from narrow to wide types, and from a wide type directly to `dst`.
fn way(src: DType, dst: DType) -> Option<DType> {
    use DType as D;
    Some(match (src, dst) {
        (D::F16 | D::BF16 | D::C64 | D::F8E5M2 | D::F8E4M3FN, _) => D::F32,
        (D::C128, _) => D::F64,
        (D::BOOL | D::I8 | D::I16 | D::U8 | D::U16, _) => D::I32,
        (D::U32, _) => D::I64,
        (D::I32 | D::I64 | D::U64 | D::F64, D::F16 | D::BF16 | D::C64) => D::F32,
        (D::I32 | D::I64 | D::U64 | D::F32, D::C128) => D::F64,
        (D::I64 | D::F32 | D::F64, D::I8 | D::I16 | D::U8 | D::U16) => D::I32,
        (D::I64, D::U32) => D::I32,
        (D::I32, D::U64) | (D::U64, _) => D::I64,
        _ => return None,
    })
}

macro_rules! direct {
    ($src:expr, $dst:expr; $($from:ty => [$($to:ty),*];)*) => {
        match ($src, $dst) {
            $($((a, b) if a == <$from as Element>::DTYPE && b == <$to as Element>::DTYPE => {
                Some(run_direct::<$from, $to> as Step)
            })*)*
            _ => None,
        }
    };
}

/// The loop from one type to another, where there is one.
fn direct(src: DType, dst: DType) -> Option<Step> {
    use DType as D;
    match (src, dst) {
        // Integers of one width differ in name only.
        (D::I32, D::U32) => Some(|_, x| x.retyped(D::U32)),
        (D::I64, D::U64) => Some(|_, x| x.retyped(D::U64)),
        (D::U64, D::I64) => Some(|_, x| x.retyped(D::I64)),
        (D::U32, D::I32) => Some(|_, x| x.retyped(D::I32)),
        (D::F8E5M2, D::F32) => Some(|ctx, x| run(ctx, Map::vector(|x: u8| E5M2.value(x)), x)),
        (D::F8E4M3FN, D::F32) => Some(|ctx, x| run(ctx, Map::vector(|x: u8| E4M3FN.value(x)), x)),
        (D::F32, D::F8E5M2) => {
            Some(|ctx, x| run(ctx, Map::vector(|x: f32| E5M2.round(x.into())), x)?.retyped(D::F8E5M2))
        }
        (D::F64, D::F8E5M2) => Some(|ctx, x| run(ctx, Map::vector(|x: f64| E5M2.round(x)), x)?.retyped(D::F8E5M2)),
        (D::F32, D::F8E4M3FN) => {
            Some(|ctx, x| run(ctx, Map::vector(|x: f32| E4M3FN.round(x.into())), x)?.retyped(D::F8E4M3FN))
        }
        (D::F64, D::F8E4M3FN) => {
            Some(|ctx, x| run(ctx, Map::vector(|x: f64| E4M3FN.round(x)), x)?.retyped(D::F8E4M3FN))
        }
        (D::C64, D::C128) => {
            Some(|ctx, x| run(ctx, Map::vector(|z: Complex32| Complex64::new(z.re.into(), z.im.into())), x))
        }
        (D::C128, D::C64) => {
            Some(|ctx, x| run(ctx, Map::vector(|z: Complex64| Complex32::new(z.re as f32, z.im as f32)), x))
        }
        _ => direct! {
            src, dst;
            f32 => [f64, i32, i64, u32, u64, bool, f16, bf16, Complex32];
            f64 => [f32, i32, i64, u32, u64, bool, f16, Complex64];
            f16 => [f32];
            bf16 => [f32];
            i32 => [f32, f64, i64, bool, i8, i16, u8, u16];
            i64 => [f32, f64, i32, bool];
            u64 => [f32, f64];
            u32 => [i64];
            i8 => [i32];
            i16 => [i32];
            u8 => [f32, i32];
            u16 => [i32];
            bool => [f32, i32];
            Complex32 => [f32];
            Complex64 => [f64];
        },
    }
}

fn run_direct<S: Source, D: Target<S::Plain>>(ctx: &Ctx<'_>, x: Tensor) -> Result<Tensor> {
    run(ctx, Map::vector(|x: S| D::from_plain(x.plain())), x)
}

fn run<S: Element, D: Element>(ctx: &Ctx<'_>, map: Map<S, D>, x: Tensor) -> Result<Tensor> {
    let mut y = Tensor::scratch::<D>(x.shape())?;
    map.apply(ctx.pool(), x.values()?, y.values_mut()?);
    Ok(y)
}

/// The loop that cuts digits off instead of rounding, for the pairs of types that TensorFlow cuts.
fn truncating(src: DType, dst: DType) -> Option<Step> {
    match (src, dst) {
        (DType::F64, DType::F32) => Some(|ctx, x| run(ctx, Map::vector(|x: f64| shortened(x, 23) as f32), x)),
        (DType::F64, DType::F16) => {
            Some(|ctx, x| run(ctx, Map::vector(|x: f64| f32_to_f16(shortened(x, 10) as f32)), x))
        }
        (DType::F32, DType::F16) => {
            Some(|ctx, x| run(ctx, Map::vector(|x: f32| f32_to_f16(shortened(x.into(), 10) as f32)), x))
        }
        (DType::F32, DType::BF16) => {
            Some(|ctx, x| run(ctx, Map::vector(|x: f32| f32_to_bf16(shortened(x.into(), 7) as f32)), x))
        }
        _ => None,
    }
}

/// `x` with its fraction truncated to the given number of bits.
#[inline(always)]
fn shortened(x: f64, bits: u32) -> f64 {
    let kept = f64::from_bits(x.to_bits() & (u64::MAX << (52 - bits)));
    if x.is_nan() { x } else { kept }
}

/// A number to be cast, as one of Rust's number types.
trait Source: Element {
    /// The number without loss; of a complex number, the real part.
    type Plain;
    /// Converts to the plain type.
    fn plain(self) -> Self::Plain;
}

/// The destination type of a cast.
trait Target<P>: Element {
    /// The nearest value, or the processor's result for a value out of range.
    fn from_plain(x: P) -> Self;
}

macro_rules! sources {
    ($($rust:ty, $plain:ty, $convert:expr;)*) => {$(
        impl Source for $rust {
            type Plain = $plain;

            #[inline(always)]
            fn plain(self) -> $plain {
                $convert(self)
            }
        }
    )*};
}

sources! {
    f32, f32, |x| x;
    f64, f64, |x| x;
    f16, f32, f16_to_f32;
    bf16, f32, bf16_to_f32;
    i8, i8, |x| x;
    i16, i16, |x| x;
    i32, i32, |x| x;
    i64, i64, |x| x;
    u8, u8, |x| x;
    u16, u16, |x| x;
    u32, u32, |x| x;
    u64, u64, |x| x;
    bool, u8, u8::from;
    Complex32, f32, |z: Complex32| z.re;
    Complex64, f64, |z: Complex64| z.re;
}

macro_rules! targets {
    ($($target:ty: $($plain:ty)* => $convert:expr;)*) => {$($(
        impl Target<$plain> for $target {
            #[inline(always)]
            fn from_plain(x: $plain) -> $target {
                $convert(x)
            }
        }
    )*)*};
}

targets! {
    i8: i32 => |x| x as i8;
    i16: i32 => |x| x as i16;
    u8: i32 => |x| x as u8;
    u16: i32 => |x| x as u16;
    i32: i8 i16 u8 u16 => i32::from;
    i32: i64 => |x| x as i32;
    i32: f32 => single_to_i32;
    i32: f64 => to_i32;
    i64: i32 u32 => i64::from;
    i64: f32 => |x: f32| to_i64(x.into());
    i64: f64 => to_i64;
    u32: f32 => |x: f32| to_u32(x.into());
    u32: f64 => to_u32;
    u64: f32 => |x: f32| to_u64(x.into());
    u64: f64 => to_u64;
    f32: u8 => f32::from;
    f32: i32 i64 u64 f64 => |x| x as f32;
    f32: f32 => |x| x;
    f64: i32 f32 => f64::from;
    f64: i64 u64 => |x| x as f64;
    f64: f64 => |x| x;
    f16: f32 => f32_to_f16;
    f16: f64 => f16::from_f64;
    bf16: f32 => f32_to_bf16;
    bool: i32 i64 => |x| x != 0;
    bool: f32 f64 => |x| x != 0.0;
    Complex32: f32 => |x| Complex { re: x, im: 0.0 };
    Complex64: f64 => |x| Complex { re: x, im: 0.0 };
}

/// Cut towards zero; what does not fit is the lowest number, as the processor has it.
#[inline(always)]
fn single_to_i32(x: f32) -> i32 {
    if x < 2_147_483_648.0 { x as i32 } else { i32::MIN }
}

#[inline(always)]
fn to_i32(x: f64) -> i32 {
    if x < 2_147_483_648.0 { x as i32 } else { i32::MIN }
}

#[inline(always)]
fn to_i64(x: f64) -> i64 {
    if x < 9_223_372_036_854_775_808.0 { x as i64 } else { i64::MIN }
}

#[inline(always)]
fn to_u32(x: f64) -> u32 {
    if (0.0..4_294_967_296.0).contains(&x) { x as u32 } else { to_i32(x) as u32 }
}

#[inline(always)]
fn to_u64(x: f64) -> u64 {
    if (0.0..18_446_744_073_709_551_616.0).contains(&x) { x as u64 } else { to_i64(x) as u64 }
}

//! Numbers of one type as numbers of another.

use super::kernels::mapping_to;
use graph::{Node, Output};
use math::function::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use math::lanes::Map;
use op::shapes::unchanged;
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, Run, Setup, grads, unary};
use status::{Result, unimplemented_op};
use tensor::{Complex, Complex32, Complex64, DType, Element, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[Op {
    def: "Cast(x: SrcT) -> y: DstT; SrcT: type; DstT: type; Truncate: bool = false",
    shape: unchanged,
    grad: Grad::Rule(cast_rule),
    kernel: cast_kernel,
}];

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
    let kernel = kernel_of(setup, storage(src), storage(dst), setup.bool("Truncate")?);
    let kernel = kernel.map_err(|_| unimplemented_op!("Cast {src} to {dst} is not supported"))?;
    Ok(if storage(dst) == dst { kernel } else { relabelled(kernel, dst) })
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

/// The same kernel, whose result is called a tensor of type `dtype`.
fn relabelled(kernel: Kernel, dtype: DType) -> Kernel {
    match kernel.run {
        Run::Unary(run) => unary(move |ctx, x| run(ctx, x)?.retyped(dtype)),
        _ => kernel,
    }
}

fn kernel_of(setup: &Setup<'_>, src: DType, dst: DType, truncate: bool) -> Result<Kernel> {
    match (src, dst, truncate) {
        (src, dst, _) if src == dst => Ok(unary(|_, x| Ok(x)).free()),
        (DType::C64, DType::C128, _) => {
            Ok(mapping_to(Map::vector(|z: Complex32| Complex64::new(z.re.into(), z.im.into()))))
        }
        (DType::C128, DType::C64, _) => {
            Ok(mapping_to(Map::vector(|z: Complex64| Complex32::new(z.re as f32, z.im as f32))))
        }
        (DType::F64, DType::F32, true) => Ok(mapping_to(Map::vector(|x: f64| shortened(x, 23) as f32))),
        (DType::F64, DType::F16, true) => Ok(mapping_to(Map::vector(|x: f64| f32_to_f16(shortened(x, 10) as f32)))),
        (DType::F32, DType::F16, true) => {
            Ok(mapping_to(Map::vector(|x: f32| f32_to_f16(shortened(x.into(), 10) as f32))))
        }
        (DType::F32, DType::BF16, true) => {
            Ok(mapping_to(Map::vector(|x: f32| f32_to_bf16(shortened(x.into(), 7) as f32))))
        }
        _ => for_plain!(setup, src, S => for_plain!(setup, dst, D => Ok(casting::<S, D>()))),
    }
}

/// `x` with only so many bits of its fraction left.
#[inline(always)]
fn shortened(x: f64, bits: u32) -> f64 {
    let kept = f64::from_bits(x.to_bits() & (u64::MAX << (52 - bits)));
    if x.is_nan() { x } else { kept }
}

fn casting<S: Source, D: Target<S::Plain>>() -> Kernel {
    mapping_to(Map::vector(|x: S| D::from_plain(x.plain())))
}

/// A number to be cast, as one of Rust's own numbers.
trait Source: Element {
    /// The number without loss; of a complex number, the real part.
    type Plain;
    /// As that.
    fn plain(self) -> Self::Plain;
}

/// What a number is cast to.
pub(super) trait Target<P>: Element {
    /// The number nearest in value, or what the processor makes of one that has no place here.
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
    ($target:ty: $($plain:ty)* => $convert:expr) => {$(
        #[allow(clippy::unnecessary_cast)]
        impl Target<$plain> for $target {
            #[inline(always)]
            fn from_plain(x: $plain) -> $target {
                $convert(x)
            }
        }
    )*};
}

macro_rules! integer_targets {
    ($($target:ty, $from_f32:expr, $from_f64:expr;)*) => {$(
        targets!($target: i8 i16 i32 i64 u8 u16 u32 u64 => |x| x as $target);
        targets!($target: f32 => $from_f32);
        targets!($target: f64 => $from_f64);
    )*};
}

integer_targets! {
    i8, |x: f32| to_i32(x.into()) as i8, |x| to_i32(x) as i8;
    i16, |x: f32| to_i32(x.into()) as i16, |x| to_i32(x) as i16;
    i32, single_to_i32, to_i32;
    i64, |x: f32| to_i64(x.into()), to_i64;
    u8, |x: f32| to_i32(x.into()) as u8, |x| to_i32(x) as u8;
    u16, |x: f32| to_i32(x.into()) as u16, |x| to_i32(x) as u16;
    u32, |x: f32| to_u32(x.into()), to_u32;
    u64, |x: f32| to_u64(x.into()), to_u64;
}

targets!(f32: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 => |x| x as f32);
targets!(f64: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 => |x| x as f64);
targets!(f16: i8 i16 i32 i64 u8 u16 u32 u64 f32 => |x| f32_to_f16(x as f32));
targets!(f16: f64 => f16::from_f64);
targets!(bf16: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 => |x| f32_to_bf16(x as f32));
targets!(bool: i8 i16 i32 i64 u8 u16 u32 u64 => |x| x != 0);
targets!(bool: f32 f64 => |x| x != 0.0);
targets!(Complex32: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 => |x| Complex { re: x as f32, im: 0.0 });
targets!(Complex64: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 => |x| Complex { re: x as f64, im: 0.0 });

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

/// A tensor as one of a wider type; one of that type already is left alone.
pub(super) fn widened<D: Target<i8> + Target<u8>>(ctx: &Ctx<'_>, x: Tensor) -> Result<Tensor> {
    let mut wide = match x.dtype() {
        dtype if dtype == D::DTYPE => return Ok(x),
        _ => Tensor::scratch::<D>(x.shape())?,
    };
    match x.dtype() {
        DType::U8 => Map::vector(|x: u8| D::from_plain(x)).apply(ctx.pool(), x.values()?, wide.values_mut()?),
        _ => Map::vector(|x: i8| D::from_plain(x)).apply(ctx.pool(), x.values()?, wide.values_mut()?),
    }
    Ok(wide)
}

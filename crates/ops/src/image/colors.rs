//! Conversions between RGB and HSV, and changes of hue, saturation and contrast.

use super::pixel::Pixel;
use graph::Output;
use math::function::Real;
use math::parallel::split_rows_mut;
use op::shapes::unchanged;
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, ShapeQuery, binary, many, outputs, unary};
use status::{Result, failed_precondition, invalid};
use tensor::{Element, PartialShape, Tensor, f16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "RGBToHSV(images: T) -> output: T; T: {half, bfloat16, float, double} = float",
        shape: of_colors,
        grad: Grad::Unknown,
        kernel: rgb_to_hsv_kernel,
        facts: PLAIN,
    },
    Op {
        def: "HSVToRGB(images: T) -> output: T; T: {half, bfloat16, float, double} = float",
        shape: of_colors,
        grad: Grad::Unknown,
        kernel: hsv_to_rgb_kernel,
        facts: PLAIN,
    },
    Op {
        def: "AdjustHue(images: T, delta: float) -> output: T; T: {half, float} = float",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: hue_kernel,
        facts: PLAIN,
    },
    Op {
        def: "AdjustSaturation(images: T, scale: float) -> output: T; T: {half, float} = float",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: saturation_kernel,
        facts: PLAIN,
    },
    Op {
        def: "AdjustContrastv2(images: T, contrast_factor: float) -> output: T; T: {half, float} = float",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: contrast_kernel,
        facts: PLAIN,
    },
    Op {
        def: "AdjustContrast(images: T, contrast_factor: float, min_value: float, max_value: float) -> output: float; \
              T: {uint8, int8, int16, int32, int64, float, double}",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: old_contrast_kernel,
        facts: PLAIN.removed_in(2, "Use AdjustContrastv2 instead"),
    },
];

/// Red, green and blue in the last axis to hue, saturation and value.
pub fn rgb_to_hsv(images: &Output) -> Output {
    images.scope().op("RGBToHSV").input(images).output()
}

/// Hue, saturation and value in the last axis to red, green and blue.
pub fn hsv_to_rgb(images: &Output) -> Output {
    images.scope().op("HSVToRGB").input(images).output()
}

fn of_colors(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    match query.inputs[0].dims() {
        Some([]) => Err(invalid!("Shape must be at least rank 1 but is rank 0")),
        Some(&[.., channels]) if channels >= 0 && channels != 3 => {
            Err(invalid!("Dimension must be 3 but is {channels}"))
        }
        _ => unchanged(query),
    }
}

fn rgb_to_hsv_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_floats!(setup, setup.dtype("T")?, T => Ok(unary(|ctx, x| each_color::<T>(ctx, checked_color(x)?, hsv_of::<T>))))
}

fn hsv_to_rgb_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_floats!(setup, setup.dtype("T")?, T => Ok(unary(|ctx, x| each_color::<T>(ctx, checked_color(x)?, rgb_of::<T>))))
}

fn checked_color(images: Tensor) -> Result<Tensor> {
    match images.shape().last() {
        None => Err(invalid!("input must be at least 1D{}", images.shape())),
        Some(3) => Ok(images),
        Some(channels) => {
            Err(failed_precondition!("input must have 3 channels but input only has {channels} channels."))
        }
    }
}

fn each_color<T: Element>(ctx: &Ctx<'_>, mut images: Tensor, f: impl Fn([T; 3]) -> [T; 3] + Sync) -> Result<Tensor> {
    split_rows_mut(ctx.pool(), 10.0, images.values_mut::<T>()?, 3, |_, values| {
        for color in values.chunks_exact_mut(3) {
            color.copy_from_slice(&f([color[0], color[1], color[2]]));
        }
    });
    Ok(images)
}

fn hsv_of<T: Real>([r, g, b]: [T; 3]) -> [T; 3] {
    let (value, lowest) = (r.larger(g).larger(b), r.smaller(g).smaller(b));
    let range = value.sub(lowest);
    let saturation = if value > T::ZERO { range.div(value) } else { T::ZERO };
    let norm = T::ONE.div(range).mul(T::from_f64(1.0 / 6.0));
    let hue = if r == value {
        norm.mul(g.sub(b))
    } else if g == value {
        norm.mul(b.sub(r)).add(T::from_f64(2.0 / 6.0))
    } else {
        norm.mul(r.sub(g)).add(T::from_f64(4.0 / 6.0))
    };
    let hue = if range > T::ZERO { hue } else { T::ZERO };
    [if hue < T::ZERO { hue.add(T::ONE) } else { hue }, saturation, value]
}

fn rgb_of<T: Real>([hue, saturation, value]: [T; 3]) -> [T; 3] {
    let number = |x: f64| T::from_f64(x);
    let sixths = hue.mul(number(6.0));
    let ramp = |distance: T| distance.larger(T::ZERO).smaller(T::ONE);
    let red = ramp(sixths.sub(number(3.0)).absolute().sub(T::ONE));
    let green = ramp(number(2.0).sub(sixths.sub(number(2.0)).absolute()));
    let blue = ramp(number(2.0).sub(sixths.sub(number(4.0)).absolute()));
    let grey = T::ONE.sub(saturation);
    [red, green, blue].map(|part| grey.add(saturation.mul(part)).mul(value))
}

/// The scalar that a change depends on.
fn amount(name: &str, tensor: &Tensor) -> Result<f32> {
    match tensor.shape().rank() {
        0 => tensor.to_scalar::<f32>(),
        _ => Err(invalid!("{name} must be scalar: {}", tensor.shape())),
    }
}

fn checked_image(images: &Tensor, colors: bool) -> Result<()> {
    if images.shape().rank() < 3 {
        return Err(invalid!("input must be at least 3-D, got shape{}", images.shape()));
    }
    match images.shape().last() {
        Some(channels) if colors && *channels != 3 => {
            Err(invalid!("input must have 3 channels but instead has {channels} channels."))
        }
        _ => Ok(()),
    }
}

fn hue_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("T")?, [f32, f16], T => Ok(binary(|ctx, images, delta| {
        checked_image(&images, true)?;
        let turn = amount("delta", &delta)? * 6.0;
        each_color::<T>(ctx, images, |color| turned(color.map(Pixel::to_f32), turn).map(Pixel::from_f32))
    })))
}

/// A colour with its hue rotated by the given number of sixths; the maximum and the minimum of its channels are
/// preserved.
fn turned(color: [f32; 3], turn: f32) -> [f32; 3] {
    let [r, g, b] = color;
    let (high, low) = (r.max(g).max(b), r.min(g).min(b));
    let range = high - low;
    if range == 0.0 || !turn.is_finite() {
        return color;
    }
    let hue = if r == high {
        (g - b) / range
    } else if g == high {
        (b - r) / range + 2.0
    } else {
        (r - g) / range + 4.0
    };
    let hue = (hue + turn).rem_euclid(6.0);
    // Over six sixths of a turn, each channel rises for one, is constant for two, falls for one, and is constant for
    // two.
    let level = |shift: f32| {
        let at = (hue + shift).rem_euclid(6.0);
        let part = if at < 1.0 {
            at
        } else if at < 3.0 {
            1.0
        } else {
            (4.0 - at).max(0.0)
        };
        low + part * range
    };
    [level(2.0), level(0.0), level(4.0)]
}

fn saturation_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("T")?, [f32, f16], T => Ok(binary(|ctx, images, scale| {
        checked_image(&images, true)?;
        let scale = amount("scale", &scale)?;
        each_color::<T>(ctx, images, |color| {
            let [hue, saturation, value] = hsv_of(color.map(Pixel::to_f32));
            rgb_of([hue, (saturation * scale).clamp(0.0, 1.0), value]).map(Pixel::from_f32)
        })
    })))
}

fn contrast_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("T")?, [f32, f16], T => Ok(binary(|ctx, images, factor| {
        checked_image(&images, false)?;
        let factor = amount("contrast_factor", &factor)?;
        let mut out = Tensor::scratch::<T>(images.shape())?;
        let values = images.values::<T>()?;
        each_image(ctx, &images, out.values_mut::<T>()?, |first, channels, out| {
            stretch(&values[first..][..out.len()], channels, factor, out, T::from_f32);
        });
        Ok(out)
    })))
}

fn old_contrast_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("T")?, [u8, i8, i16, i32, i64, f32, f64], T => Ok(many(|ctx, mut inputs| {
        let images = inputs.tensor(0)?;
        checked_image(&images, false)?;
        let factor = amount("contrast_factor", &inputs.tensor(1)?)?;
        let low = amount("min_value", &inputs.tensor(2)?)?;
        let high = amount("max_value", &inputs.tensor(3)?)?;
        let mut out = Tensor::scratch::<f32>(images.shape())?;
        let values = images.values::<T>()?;
        each_image(ctx, &images, out.values_mut::<f32>()?, |first, channels, out| {
            stretch(&values[first..][..out.len()], channels, factor, out, |x| x.max(low).min(high));
        });
        Ok(outputs![out])
    })))
}

/// Calls `body` with the first element of each image, its channels, and its part of the result.
fn each_image<T: Send>(ctx: &Ctx<'_>, images: &Tensor, out: &mut [T], body: impl Fn(usize, usize, &mut [T]) + Sync) {
    let dims = images.shape();
    let size: usize = dims[dims.len() - 3..].iter().product();
    split_rows_mut(ctx.pool(), 2.0 * size as f32, out, size.max(1), |first, out| {
        for (i, out) in out.chunks_exact_mut(size).enumerate() {
            body((first + i) * size, dims[dims.len() - 1], out);
        }
    });
}

/// Moves every channel away from its mean by a factor.
fn stretch<T: Pixel, U>(image: &[T], channels: usize, factor: f32, out: &mut [U], finish: impl Fn(f32) -> U) {
    let mut sums = vec![0f64; channels];
    for pixel in image.chunks_exact(channels) {
        sums.iter_mut().zip(pixel).for_each(|(sum, x)| *sum += f64::from(x.to_f32()));
    }
    let count = (image.len() / channels) as f64;
    let means: Vec<f32> = sums.iter().map(|sum| (sum / count) as f32).collect();
    for (out, pixel) in out.chunks_exact_mut(channels).zip(image.chunks_exact(channels)) {
        for ((out, x), mean) in out.iter_mut().zip(pixel).zip(&means) {
            *out = finish((x.to_f32() - mean) * factor + mean);
        }
    }
}

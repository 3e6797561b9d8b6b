//! Image summaries: pictures under tags, as PNG files.

use super::{numbered, scalar_tag};
use crate::image::encode::png_file;
use ::image::ExtendedColorType;
use ::image::codecs::png::CompressionType;
use graph::{AttrValue, Output};
use io::event::{Image, SummaryData, SummaryValue, write_summary};
use op::shapes::scalar;
use op::{Kernel, Op, Setup, binary};
use status::{Result, invalid};
use tensor::{Bytes, DType, Element, Tensor, f16};

pub(crate) const OPS: &[Op] = rows! {
    "ImageSummary(tag: string, tensor: T) -> summary: string; max_images: int >= 1 = 3; \
     T: {uint8, float, half, double} = float; bad_color: tensor", scalar, image_kernel;
};

/// The colour of NaN and infinite pixels: red.
pub const BAD_COLOR: [u8; 4] = [255, 0, 0, 255];

/// A summary of up to `most` pictures, of shape [picture, row, column, channel].
pub fn image_summary(tag: &Output, pictures: &Output, most: impl Into<AttrValue>) -> Output {
    let op = pictures.scope().op("ImageSummary").input(tag).input(pictures).attr("max_images", most);
    op.attr("bad_color", Tensor::vector(&BAD_COLOR)).output()
}

fn image_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let most = most_images(setup)?;
    let bad_color = bad_color(setup)?;
    Ok(binary(move |_, tag, pictures| {
        let tag = scalar_tag(&tag, "Tags must be a scalar")?;
        let dims = checked_dims(&pictures)?;
        if dims[1..].contains(&0) {
            return Err(invalid!("input tensor must have non-zero dims. Found: {dims:?}."));
        }
        Ok(Tensor::string(message(&tag, &pictures, &bad_color, most)?))
    })
    .heavy())
}

/// Attribute `max_images`.
pub(super) fn most_images(setup: &Setup<'_>) -> Result<usize> {
    let most = setup.int("max_images")?;
    match i32::try_from(most) {
        Ok(most) => Ok(usize::try_from(most).unwrap_or(0)),
        Err(_) => Err(invalid!("max_images must be < 2^31")),
    }
}

fn bad_color(setup: &Setup<'_>) -> Result<Vec<u8>> {
    if setup.find("bad_color").is_none() {
        return Ok(BAD_COLOR.to_vec());
    }
    let color = setup.tensor("bad_color")?;
    if color.dtype() != DType::U8 {
        return Err(invalid!("bad_color must be uint8, got {}", color.dtype()));
    }
    check_color(&color)?;
    Ok(color.values::<u8>()?.to_vec())
}

/// An error if a colour is not a vector.
pub(super) fn check_color(color: &Tensor) -> Result<()> {
    match color.shape().rank() {
        1 => Ok(()),
        _ => Err(invalid!("bad_color must be a vector, got shape {}", color.shape())),
    }
}

fn checked_dims(pictures: &Tensor) -> Result<[usize; 4]> {
    let &[count, height, width, channels @ (1 | 3 | 4)] = pictures.shape().dims() else {
        return Err(invalid!("Tensor must be 4-D with last dim 1, 3, or 4, not {}", pictures.shape()));
    };
    let most = i32::MAX as usize;
    let small = count <= most && height <= most && width <= most && height * width < 1 << 29;
    match small {
        true => Ok([count, height, width, channels]),
        false => Err(invalid!("Tensor too large for summary {}", pictures.shape())),
    }
}

/// A Summary message of the first pictures of a tensor.
pub(super) fn message(tag: &str, pictures: &Tensor, bad_color: &[u8], most: usize) -> Result<Bytes> {
    let [count, height, width, channels] = checked_dims(pictures)?;
    if pictures.dtype() != DType::U8 && bad_color.len() < channels {
        return Err(invalid!(
            "expected depth <= bad_color.size, got depth = {channels}, bad_color.size = {}",
            bad_color.len()
        ));
    }
    let size = height * width * channels;
    let colors = [ExtendedColorType::L8, ExtendedColorType::La8, ExtendedColorType::Rgb8, ExtendedColorType::Rgba8];
    let picture = |index: usize| {
        let pixels = pixels(pictures, index * size, size, channels, bad_color)?;
        let file = png_file(&pixels, (height, width), colors[channels - 1], CompressionType::Default)?;
        let (height, width, colorspace) = (height as i32, width as i32, channels as i32);
        let data = SummaryData::Image(Image { height, width, colorspace, encoded: file });
        Ok(SummaryValue { tag: numbered(tag, "image", index, most), data, ..SummaryValue::default() })
    };
    let values = (0..count.min(most)).map(picture).collect::<Result<Vec<_>>>()?;
    write_summary(&values)
}

/// The bytes of one picture.
fn pixels(pictures: &Tensor, start: usize, size: usize, channels: usize, bad_color: &[u8]) -> Result<Vec<u8>> {
    fn part<T: Element>(pictures: &Tensor, start: usize, size: usize) -> Result<&[T]> {
        Ok(&pictures.values::<T>()?[start..][..size])
    }
    let bad_color = bad_color.get(..channels).unwrap_or_default();
    match pictures.dtype() {
        DType::U8 => Ok(part::<u8>(pictures, start, size)?.to_vec()),
        DType::F16 => Ok(scaled(part::<f16>(pictures, start, size)?, bad_color)),
        DType::F32 => Ok(scaled(part::<f32>(pictures, start, size)?, bad_color)),
        DType::F64 => Ok(scaled(part::<f64>(pictures, start, size)?, bad_color)),
        other => Err(invalid!("Only DT_INT8, DT_HALF, DT_DOUBLE, and DT_FLOAT images are supported. Got {other}")),
    }
}

/// A brightness that is not a byte.
trait Brightness: Element {
    fn narrow(self) -> f32;
    fn is_finite(self) -> bool;
    /// `self * scale + offset` in this type, cut to a byte.
    fn placed(self, scale: f32, offset: f32) -> u8;
}

macro_rules! brightness {
    ($($rust:ty, $from:expr, $narrow:expr, $byte:expr;)*) => {$(
        impl Brightness for $rust {
            fn narrow(self) -> f32 {
                $narrow(self)
            }

            fn is_finite(self) -> bool {
                <$rust>::is_finite(self)
            }

            fn placed(self, scale: f32, offset: f32) -> u8 {
                $byte(self * $from(scale) + $from(offset))
            }
        }
    )*};
}

brightness! {
    f16, f16::from_f32, f16::to_f32, |x: f16| x.to_f32() as u8;
    f32, |x| x, |x| x, |x| x as u8;
    f64, f64::from, |x| x as f32, |x| x as u8;
}

/// Brightness as bytes. Numbers of one sign run from 0 to 255 for the largest; with both signs, zero is 128 and the
/// largest in size is 127 from it. Pixels that are not finite get `bad_color`.
fn scaled<T: Brightness>(values: &[T], bad_color: &[u8]) -> Vec<u8> {
    let is_good = |pixel: &&[T]| pixel.iter().all(|value| value.is_finite());
    let pixels = || values.chunks_exact(bad_color.len());
    let (mut min, mut max) = (f32::INFINITY, f32::NEG_INFINITY);
    for value in pixels().filter(is_good).flatten().map(|value| value.narrow()) {
        (min, max) = (min.min(value), max.max(value));
    }
    let scale = |range: f32, largest: f32| if largest < 1e-6 { 0.0 } else { range / largest };
    let (scale, offset) = match min < 0.0 {
        true => (scale(127.0, min.abs().max(max.abs())), 128.0),
        false => (scale(255.0, max), 0.0),
    };
    let mut bytes = Vec::with_capacity(values.len());
    for pixel in pixels() {
        match is_good(&pixel) {
            true => bytes.extend(pixel.iter().map(|value| value.placed(scale, offset))),
            false => bytes.extend_from_slice(bad_color),
        }
    }
    bytes
}

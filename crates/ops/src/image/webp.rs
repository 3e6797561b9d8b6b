//! Decodes WebP files: single images and animations.

use ::image::codecs::webp::WebPDecoder;
use ::image::{AnimationDecoder, ImageDecoder, ImageFormat, ImageReader};
use status::{Result, exhausted, invalid};
use std::io::Cursor;
use tensor::{DType, Shape, Tensor};

/// The most bytes of an animation.
const MAX_BYTES: u64 = 1 << 31;

/// The pixels of a file, of as many channels as it has; `frames` says whether the result has an axis of frames.
pub(super) fn decode(bytes: &[u8], channels: usize, dtype: DType, frames: bool) -> Result<Tensor> {
    if channels == 1 {
        return Err(invalid!("WebP only supports 3 or 4 channels"));
    }
    if dtype != DType::U8 {
        return Err(invalid!("WebP only supports uint8 for dtype"));
    }
    let decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(|_| invalid!("Failed to decode WebP header."))?;
    let (width, height) = decoder.dimensions();
    let found = usize::from(decoder.color_type().channel_count());
    if channels != 0 && channels != found {
        return Err(invalid!("Number of channels requested does not match input"));
    }
    if decoder.has_animation() {
        if channels != 0 && channels != 4 {
            return Err(invalid!("WebP Animation must be 4 channel RGBA"));
        }
        if u64::from(width) * u64::from(height) * 4 > MAX_BYTES / 4 {
            return Err(exhausted!("A WebP animation has frames of {height} x {width} pixels, which are too many"));
        }
        return animation(decoder, (height as usize, width as usize), frames);
    }
    // The reader's default limits keep a small file from asking for much memory.
    let image = ImageReader::with_format(Cursor::new(bytes), ImageFormat::WebP).decode();
    let image = image.map_err(|_| invalid!("Failed to decode WebP image."))?;
    let dims = [height as usize, width as usize, found];
    Tensor::from_slice(shape(frames.then_some(1), &dims), &image.into_bytes())
}

fn shape(frames: Option<usize>, dims: &[usize]) -> Shape {
    frames.into_iter().chain(dims.iter().copied()).collect()
}

/// All frames, or only the first, with alpha.
fn animation(decoder: WebPDecoder<Cursor<&[u8]>>, (height, width): (usize, usize), all: bool) -> Result<Tensor> {
    let (mut pixels, mut count) = (Vec::new(), 0);
    for frame in decoder.into_frames().take(if all { usize::MAX } else { 1 }) {
        let frame = frame.map_err(|error| invalid!("Failed to decode WebP Animation: {error}"))?;
        pixels.extend_from_slice(frame.buffer());
        count += 1;
        if pixels.len() as u64 > MAX_BYTES {
            return Err(exhausted!("A WebP animation has more than {MAX_BYTES} bytes when it is decoded"));
        }
    }
    Tensor::from_slice(shape(all.then_some(count), &[height, width, 4]), &pixels)
}

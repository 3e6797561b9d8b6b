//! Resizing by the mean over the area of each output pixel.

use super::pixel::Pixel;
use super::resizing::{Mapping, Sizes, Tap, resized_shape};
use graph::Output;
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, binary};
use status::Result;
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[Op {
    def: "ResizeArea(images: T, size: int32) -> resized_images: float; \
          T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}; align_corners: bool = false",
    shape: resized_shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

/// Images of the wanted height and width, each pixel the mean of the area it covers.
pub fn resize_area(images: &Output, size: &Output) -> Output {
    images.scope().op("ResizeArea").input(images).input(size).output()
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let mapping = Mapping::of(setup)?;
    for_reals!(setup, setup.dtype("T")?, T => {
        Ok(binary(move |ctx, images, size| run::<T>(ctx, mapping, images, size)).heavy())
    })
}

/// The pixels that each resized one covers, with the covered part of each.
fn covered(mapping: Mapping, original: usize, resized: usize) -> Vec<Vec<Tap>> {
    let scale = mapping.scale(original, resized);
    (0..resized)
        .map(|at| {
            let (start, end) = (at as f32 * scale, (at + 1) as f32 * scale);
            let pixels = start.floor() as i64..end.ceil() as i64;
            pixels.map(|pixel| tap(pixel, start, end, scale, original)).collect()
        })
        .collect()
}

fn tap(pixel: i64, start: f32, end: f32, scale: f32, original: usize) -> Tap {
    let (left, right) = (pixel as f32, (pixel + 1) as f32);
    let weight = match (left < start, right > end) {
        (true, true) => scale,
        (true, false) => right - start,
        (false, true) => end - left,
        (false, false) => 1.0,
    };
    Tap { at: pixel.clamp(0, original as i64 - 1) as usize, weight }
}

fn run<T: Pixel>(ctx: &Ctx<'_>, mapping: Mapping, images: Tensor, size: Tensor) -> Result<Tensor> {
    let sizes = Sizes::new(&images, &size)?;
    let [rows, cols] = [0, 1].map(|axis| covered(mapping, sizes.original[axis], sizes.resized[axis]));
    let [down, across] = [0, 1].map(|axis| mapping.scale(sizes.original[axis], sizes.resized[axis]));
    let share = 1.0 / (down * across);
    let mut out = Tensor::scratch::<f32>(sizes.resized_shape())?;
    let values = images.values::<T>()?;
    let ([height, width], channels) = (sizes.original, sizes.channels);
    let line = cols.len() * channels;
    let cost = line as f32 * (1.0 + down) * (1.0 + across);
    math::parallel::split_rows_mut(ctx.pool(), cost, out.values_mut::<f32>()?, line, |first, out| {
        for (i, out) in out.chunks_exact_mut(line).enumerate() {
            let (image, row) = ((first + i) / rows.len(), &rows[(first + i) % rows.len()]);
            for (out, col) in out.chunks_exact_mut(channels).zip(&cols) {
                out.fill(0.0);
                for y in row {
                    let source = &values[(image * height + y.at) * width * channels..][..width * channels];
                    for x in col {
                        let pixel = &source[x.at * channels..][..channels];
                        let weight = y.weight * x.weight * share;
                        out.iter_mut().zip(pixel).for_each(|(out, pixel)| *out += pixel.to_f32() * weight);
                    }
                }
            }
        }
    });
    Ok(out)
}

//! Bilinear resizing, and its derivative.

use super::pixel::{Pixel, Summed};
use super::resizing::{Mapping, Sizes, Tap, grad_by_taps, grad_shape, resized_shape};
use crate::nn::copied;
use graph::{Node, Output};
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads};
use status::Result;
use tensor::{Element, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ResizeBilinear(images: T, size: int32) -> resized_images: float; \
              T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, bfloat16}; \
              align_corners: bool = false; half_pixel_centers: bool = false",
        shape: resized_shape,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResizeBilinearGrad(grads: float, original_image: T) -> output: T; T: {float, bfloat16, half, double}; \
              align_corners: bool = false; half_pixel_centers: bool = false",
        shape: grad_shape,
        grad: Grad::Rule(grad_rule),
        kernel: grad_kernel,
        facts: PLAIN,
    },
];

/// Images of the wanted height and width, interpolated linearly.
pub fn resize_bilinear(images: &Output, size: &Output) -> Output {
    images.scope().op("ResizeBilinear").input(images).input(size).output()
}

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let builder = dy.scope().op("ResizeBilinearGrad").input(dy).input(&op.input(0));
    Ok(grads![copied(builder, op, &["align_corners", "half_pixel_centers"])?.output(), NoGradient])
}

/// Linear in the gradients, and does not depend on the values of the image.
fn grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let size = crate::nn::image_size_of(&op.input(0));
    let builder = dy.scope().op("ResizeBilinear").input(dy).input(&size);
    Ok(grads![copied(builder, op, &["align_corners", "half_pixel_centers"])?.output(), NoGradient])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let mapping = Mapping::of(setup)?;
    for_reals!(setup, setup.dtype("T")?, T => {
        Ok(binary(move |ctx, images, size| run::<T>(ctx, mapping, images, size)).heavy())
    })
}

/// The two pixels between which each resized pixel lies, and its distance from the first.
struct Between {
    lower: usize,
    upper: usize,
    part: f32,
}

fn between(mapping: Mapping, original: usize, resized: usize) -> Vec<Between> {
    let scale = mapping.scale(original, resized);
    let last = original - 1;
    (0..resized)
        .map(|at| {
            let place = mapping.place(at, scale);
            let upper = (place.ceil().max(0.0) as usize).min(last);
            let lower = (place.floor().max(0.0) as usize).min(upper);
            Between { lower, upper, part: place - place.floor() }
        })
        .collect()
}

fn run<T: Pixel>(ctx: &Ctx<'_>, mapping: Mapping, images: Tensor, size: Tensor) -> Result<Tensor> {
    let sizes = Sizes::new(&images, &size)?;
    if sizes.original == sizes.resized && images.dtype() == f32::DTYPE {
        return Ok(images);
    }
    let [rows, cols] = [0, 1].map(|axis| between(mapping, sizes.original[axis], sizes.resized[axis]));
    let mut out = Tensor::scratch::<f32>(sizes.resized_shape())?;
    let values = images.values::<T>()?;
    let ([height, width], channels) = (sizes.original, sizes.channels);
    let line = cols.len() * channels;
    math::parallel::split_rows_mut(ctx.pool(), 3.0 * line as f32, out.values_mut::<f32>()?, line, |first, out| {
        for (i, out) in out.chunks_exact_mut(line).enumerate() {
            let (image, row) = ((first + i) / rows.len(), &rows[(first + i) % rows.len()]);
            let source = |y: usize| &values[(image * height + y) * width * channels..][..width * channels];
            let (top, bottom) = (source(row.lower), source(row.upper));
            interpolate(top, bottom, row.part, &cols, channels, out);
        }
    });
    Ok(out)
}

/// Interpolates one line from two.
fn interpolate<T: Pixel>(top: &[T], bottom: &[T], part: f32, cols: &[Between], channels: usize, out: &mut [f32]) {
    for (out, col) in out.chunks_exact_mut(channels).zip(cols) {
        let (left, right) = (col.lower * channels, col.upper * channels);
        let pixel = |line: &'_ [T], at: usize, c: usize| line[at + c].to_f32();
        for (c, out) in out.iter_mut().enumerate() {
            let (top_left, bottom_left) = (pixel(top, left, c), pixel(bottom, left, c));
            let top = top_left + (pixel(top, right, c) - top_left) * col.part;
            let bottom = bottom_left + (pixel(bottom, right, c) - bottom_left) * col.part;
            *out = top + (bottom - top) * part;
        }
    }
}

fn grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let mapping = Mapping::of(setup)?;
    for_floats!(setup, setup.dtype("T")?, T => {
        Ok(binary(move |ctx, grads, original| run_grad::<T>(ctx, mapping, grads, original)).heavy())
    })
}

fn run_grad<T: Summed>(ctx: &Ctx<'_>, mapping: Mapping, grads: Tensor, original: Tensor) -> Result<Tensor> {
    let sizes = Sizes::of_grad(&grads, &original)?;
    let taps = |axis: usize| -> Vec<[Tap; 2]> {
        let places = between(mapping, sizes.original[axis], sizes.resized[axis]);
        let tap = |at, weight| Tap { at, weight };
        places.iter().map(|place| [tap(place.lower, 1.0 - place.part), tap(place.upper, place.part)]).collect()
    };
    let (rows, cols) = (taps(0), taps(1));
    super::narrowed::<T>(ctx, sizes.original_shape(), |out| {
        let share = |grad: f32, row: f32, col: f32| T::Sum::from(grad * row * col);
        grad_by_taps(ctx.pool(), &sizes, &rows, &cols, grads.values::<f32>()?, share, out);
        Ok(())
    })
}

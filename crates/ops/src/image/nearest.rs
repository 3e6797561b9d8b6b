//! Nearest-neighbour resizing, and its derivative.

use super::resizing::{Mapping, Sizes, resized_shape, two_sizes};
use crate::nn::{copied, image_size_of};
use graph::{Node, Output};
use math::function::Number;
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads};
use status::{Result, invalid};
use tensor::{Element, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ResizeNearestNeighbor(images: T, size: int32) -> resized_images: T; \
              T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}; \
              align_corners: bool = false; half_pixel_centers: bool = false",
        shape: resized_shape,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResizeNearestNeighborGrad(grads: T, size: int32) -> output: T; \
              T: {uint8, int8, int32, half, float, double, bfloat16}; align_corners: bool = false; \
              half_pixel_centers: bool = false",
        shape: resized_shape,
        grad: Grad::Rule(grad_rule),
        kernel: grad_kernel,
        facts: PLAIN,
    },
];

/// Images of the wanted height and width, each pixel a copy of the nearest.
pub fn resize_nearest_neighbor(images: &Output, size: &Output) -> Output {
    images.scope().op("ResizeNearestNeighbor").input(images).input(size).output()
}

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let builder = dy.scope().op("ResizeNearestNeighborGrad").input(dy).input(&image_size_of(&op.input(0)));
    Ok(grads![copied(builder, op, &["align_corners", "half_pixel_centers"])?.output(), NoGradient])
}

fn grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let builder = dy.scope().op("ResizeNearestNeighbor").input(dy).input(&image_size_of(&op.input(0)));
    Ok(grads![copied(builder, op, &["align_corners", "half_pixel_centers"])?.output(), NoGradient])
}

/// Which pixel of the original each resized one copies.
fn nearest(mapping: Mapping, original: usize, resized: usize) -> Vec<usize> {
    let scale = mapping.scale(original, resized);
    let centre = if mapping.half_pixel_centers { 0.5 } else { 0.0 };
    (0..resized)
        .map(|at| {
            let place = (at as f32 + centre) * scale;
            let pixel = if mapping.align_corners { place.round() } else { place.floor() };
            (pixel.max(0.0) as usize).min(original - 1)
        })
        .collect()
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let mapping = Mapping::of(setup)?;
    for_reals!(setup, setup.dtype("T")?, T => {
        Ok(binary(move |ctx, images, size| run::<T>(ctx, mapping, images, size)).heavy())
    })
}

fn run<T: Element>(ctx: &Ctx<'_>, mapping: Mapping, images: Tensor, size: Tensor) -> Result<Tensor> {
    let sizes = Sizes::new(&images, &size)?;
    let [rows, cols] = [0, 1].map(|axis| nearest(mapping, sizes.original[axis], sizes.resized[axis]));
    let mut out = Tensor::scratch::<T>(sizes.resized_shape())?;
    let values = images.values::<T>()?;
    let ([height, width], channels) = (sizes.original, sizes.channels);
    let line = cols.len() * channels;
    math::parallel::split_rows_mut(ctx.pool(), line as f32, out.values_mut::<T>()?, line, |first, out| {
        for (i, out) in out.chunks_exact_mut(line).enumerate() {
            let (image, row) = ((first + i) / rows.len(), rows[(first + i) % rows.len()]);
            let source = &values[(image * height + row) * width * channels..][..width * channels];
            for (out, col) in out.chunks_exact_mut(channels).zip(&cols) {
                out.copy_from_slice(&source[col * channels..][..channels]);
            }
        }
    });
    Ok(out)
}

fn grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let mapping = Mapping::of(setup)?;
    for_reals!(setup, setup.dtype("T")?, T => {
        Ok(binary(move |ctx, grads, size| run_grad::<T>(ctx, mapping, grads, size)).heavy())
    })
}

fn run_grad<T: Element + Number>(ctx: &Ctx<'_>, mapping: Mapping, grads: Tensor, size: Tensor) -> Result<Tensor> {
    let &[batch, rows, cols, channels] = grads.shape().dims() else {
        return Err(invalid!("input must be 4-dimensional{}", grads.shape()));
    };
    let [height, width] = two_sizes(&size)?;
    if height <= 0 || width <= 0 {
        return Err(invalid!("shape_t's elements must be positive"));
    }
    let shape = Shape::checked(&[batch as i64, height, width, channels as i64])?;
    let mut out = Tensor::zeros::<T>(&shape)?;
    if grads.elements() == 0 {
        return Ok(out);
    }
    let (ys, xs) = (nearest(mapping, height as usize, rows), nearest(mapping, width as usize, cols));
    let values = grads.values::<T>()?;
    let (image, each) = (out.elements() / batch, values.len() / batch);
    math::parallel::split_rows_mut(ctx.pool(), 2.0 * each as f32, out.values_mut::<T>()?, image, |first, out| {
        for (i, out) in out.chunks_exact_mut(image).enumerate() {
            let grads = values[(first + i) * each..][..each].chunks_exact(channels);
            for (point, grad) in grads.enumerate() {
                let at = ys[point / cols] * width as usize + xs[point % cols];
                let out = &mut out[at * channels..][..channels];
                out.iter_mut().zip(grad).for_each(|(out, &grad)| *out = out.add(grad));
            }
        }
    });
    Ok(out)
}

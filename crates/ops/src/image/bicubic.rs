//! Bicubic resizing, and its derivative.

use super::pixel::{Pixel, Summed};
use super::resizing::{Mapping, Sizes, Tap, by_taps, grad_by_taps, grad_shape, resized_shape};
use crate::nn::copied;
use graph::{Node, Output};
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads};
use status::Result;
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ResizeBicubic(images: T, size: int32) -> resized_images: float; \
              T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}; \
              align_corners: bool = false; half_pixel_centers: bool = false",
        shape: resized_shape,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResizeBicubicGrad(grads: float, original_image: T) -> output: T; T: {float, double}; \
              align_corners: bool = false; half_pixel_centers: bool = false",
        shape: grad_shape,
        grad: Grad::Unknown,
        kernel: grad_kernel,
        facts: PLAIN,
    },
];

/// Images of the wanted height and width, interpolated by cubics.
pub fn resize_bicubic(images: &Output, size: &Output) -> Output {
    images.scope().op("ResizeBicubic").input(images).input(size).output()
}

/// TensorFlow has no gradient for images of other types than float and double.
fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    if !matches!(op.input(0).dtype(), tensor::DType::F32 | tensor::DType::F64) {
        return Ok(grads![NoGradient, NoGradient]);
    }
    let builder = dy.scope().op("ResizeBicubicGrad").input(dy).input(&op.input(0));
    Ok(grads![copied(builder, op, &["align_corners", "half_pixel_centers"])?.output(), NoGradient])
}

/// Into how many steps the distance between two pixels is cut: TensorFlow looks weights up in a table of these.
const STEPS: f32 = 1024.0;

/// The weight of a pixel at the given distance, up to two pixels; `a` is the slope at one pixel.
fn weight(steps: f32, a: f64) -> f32 {
    let x = f64::from(steps / STEPS);
    let near = || ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    let far = || ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
    (if x <= 1.0 { near() } else { far() }) as f32
}

fn taps(mapping: Mapping, original: usize, resized: usize) -> Vec<[Tap; 4]> {
    let scale = mapping.scale(original, resized);
    (0..resized).map(|at| taps_at(mapping, mapping.place(at, scale), original)).collect()
}

fn taps_at(mapping: Mapping, place: f32, original: usize) -> [Tap; 4] {
    let first = place.floor();
    let step = ((place - first) * STEPS).round_ties_even();
    let a = if mapping.half_pixel_centers { -0.5 } else { -0.75 };
    let steps = [step + STEPS, step, STEPS - step, 2.0 * STEPS - step];
    let mut taps: [Tap; 4] = std::array::from_fn(|i| {
        let wanted = first as i64 + i as i64 - 1;
        let at = wanted.clamp(0, original as i64 - 1);
        // With centred pixels those outside of the image do not count, else the border is repeated.
        let counts = at == wanted || !mapping.half_pixel_centers;
        Tap { at: at as usize, weight: if counts { weight(steps[i], a) } else { 0.0 } }
    });
    if mapping.half_pixel_centers {
        let sum: f32 = taps.iter().map(|tap| tap.weight).sum();
        if sum.abs() >= 1000.0 * f32::MIN_POSITIVE {
            taps.iter_mut().for_each(|tap| tap.weight *= 1.0 / sum);
        }
    }
    taps
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let mapping = Mapping::of(setup)?;
    for_reals!(setup, setup.dtype("T")?, T => {
        Ok(binary(move |ctx, images, size| run::<T>(ctx, mapping, images, size)).heavy())
    })
}

fn run<T: Pixel>(ctx: &Ctx<'_>, mapping: Mapping, images: Tensor, size: Tensor) -> Result<Tensor> {
    let sizes = Sizes::new(&images, &size)?;
    let [rows, cols] = [0, 1].map(|axis| taps(mapping, sizes.original[axis], sizes.resized[axis]));
    let mut out = Tensor::scratch::<f32>(sizes.resized_shape())?;
    by_taps(ctx.pool(), &sizes, &rows, &cols, images.values::<T>()?, out.values_mut()?);
    Ok(out)
}

fn grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let mapping = Mapping::of(setup)?;
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => {
        Ok(binary(move |ctx, grads, original| run_grad::<T>(ctx, mapping, grads, original)).heavy())
    })
}

fn run_grad<T: Summed>(ctx: &Ctx<'_>, mapping: Mapping, grads: Tensor, original: Tensor) -> Result<Tensor> {
    let sizes = Sizes::of_grad(&grads, &original)?;
    let [rows, cols] = [0, 1].map(|axis| taps(mapping, sizes.original[axis], sizes.resized[axis]));
    super::narrowed::<T>(ctx, sizes.original_shape(), |out| {
        let share = |grad: f32, row: f32, col: f32| T::Sum::from(grad) * T::Sum::from(row) * T::Sum::from(col);
        grad_by_taps(ctx.pool(), &sizes, &rows, &cols, grads.values::<f32>()?, share, out);
        Ok(())
    })
}

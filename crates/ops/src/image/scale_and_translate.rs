//! Scales and shifts images with one of several sampling kernels, and the derivative of that.

use super::pixel::Pixel;
use super::resizing::{Sizes, grad_shape, resized_shape};
use crate::nn::copied;
use graph::{Node, Output};
use math::Pool;
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, PLAIN, Setup, grads, many, outputs};
use status::{Result, exhausted, invalid};
use tensor::{Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ScaleAndTranslate(images: T, size: int32, scale: float, translation: float) -> resized_images: float; \
              T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}; \
              kernel_type: string = \"lanczos3\"; antialias: bool = true",
        shape: resized_shape,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ScaleAndTranslateGrad(grads: T, original_image: T, scale: float, translation: float) -> output: T; \
              T: {float}; kernel_type: string = \"lanczos3\"; antialias: bool = true",
        shape: grad_shape,
        grad: Grad::Unknown,
        kernel: grad_kernel,
        facts: PLAIN,
    },
];

/// Images of the wanted height and width, whose pixels are those of `images`, scaled and then shifted, by rows and columns.
pub fn scale_and_translate(images: &Output, size: &Output, scale: &Output, translation: &Output) -> Output {
    let op = images.scope().op("ScaleAndTranslate");
    op.input(images).input(size).input(scale).input(translation).output()
}

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [images, _, scale, translation] = op.inputs()?;
    let builder = dy.scope().op("ScaleAndTranslateGrad").input(dy).input(&images).input(&scale).input(&translation);
    let back = copied(builder, op, &["kernel_type", "antialias"])?.output();
    Ok(grads![back, NoGradient, NoGradient, NoGradient])
}

/// A function of the distance from a sample, which is zero from a radius on.
#[derive(Clone, Copy)]
enum Window {
    Lanczos(f32),
    Gaussian,
    Box,
    Triangle,
    KeysCubic,
    MitchellCubic,
}

impl Window {
    fn named(name: &str) -> Option<Window> {
        Some(match name.to_ascii_lowercase().as_str() {
            "lanczos1" => Window::Lanczos(1.0),
            "lanczos3" => Window::Lanczos(3.0),
            "lanczos5" => Window::Lanczos(5.0),
            "gaussian" => Window::Gaussian,
            "box" => Window::Box,
            "triangle" => Window::Triangle,
            "keyscubic" => Window::KeysCubic,
            "mitchellcubic" => Window::MitchellCubic,
            _ => return None,
        })
    }

    fn radius(self) -> f32 {
        match self {
            Window::Lanczos(radius) => radius,
            Window::Gaussian => 1.5,
            Window::Box | Window::Triangle => 1.0,
            Window::KeysCubic | Window::MitchellCubic => 2.0,
        }
    }

    /// The weight at a distance of at least zero.
    fn at(self, x: f32) -> f32 {
        match self {
            Window::Lanczos(radius) => lanczos(x, radius),
            // The standard deviation is a third of the radius.
            Window::Gaussian if x < 1.5 => (-x * x / 0.5).exp(),
            Window::Box if x < 0.5 => 1.0,
            Window::Box if x == 0.5 => 0.5,
            Window::Triangle if x < 1.0 => 1.0 - x,
            Window::KeysCubic if x < 1.0 => ((1.5 * x - 2.5) * x) * x + 1.0,
            Window::KeysCubic if x < 2.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
            Window::MitchellCubic if x < 1.0 => ((7.0 / 6.0 * x - 2.0) * x) * x + 8.0 / 9.0,
            Window::MitchellCubic if x < 2.0 => ((-7.0 / 18.0 * x + 2.0) * x - 10.0 / 3.0) * x + 16.0 / 9.0,
            _ => 0.0,
        }
    }
}

fn lanczos(x: f32, radius: f32) -> f32 {
    use std::f32::consts::PI;
    match x {
        x if x > radius => 0.0,
        x if x <= 1e-3 => 1.0, // the limit of sin(x) / x
        x => radius * (PI * x).sin() * (PI * x / radius).sin() / (PI * PI * x * x),
    }
}

/// The pixels of an axis that make up one pixel of the result, and their weights.
#[derive(Clone, Default)]
struct Span {
    start: usize,
    weights: Vec<f32>,
}

/// The most weights of an axis: with a small scale each pixel of the result has the whole axis as its span.
const MAX_WEIGHTS: usize = 1 << 28;

/// The attributes.
#[derive(Clone, Copy)]
struct Sampling {
    window: Window,
    antialias: bool,
}

impl Sampling {
    fn of(setup: &Setup<'_>) -> Result<Sampling> {
        let name = setup.string("kernel_type")?;
        let window = Window::named(&name).ok_or_else(|| invalid!("Unrecognized kernel type: {name}"))?;
        Ok(Sampling { window, antialias: setup.bool("antialias")? })
    }

    /// The spans of an axis of `input` pixels that becomes one of `output` pixels.
    fn spans(self, output: usize, input: usize, scale: f32, shift: f32) -> Result<Vec<Span>> {
        let inverse = (1.0 / f64::from(scale)) as f32;
        let shift = -inverse * shift;
        // A smaller image needs a wider window, which blurs what is too fine for it.
        let wide = if self.antialias { inverse.max(1.0) } else { 1.0 };
        let longest = (2.0 * (self.window.radius() * wide).ceil() + 1.0).min(input as f32) as usize;
        if output.saturating_mul(longest + size_of::<Span>() / 4).max(input) > MAX_WEIGHTS {
            return Err(exhausted!("OOM when allocating tensor with shape[{output},{longest}] and type float"));
        }
        Ok((0..output).map(|at| self.span((at as f32 + 0.5) * inverse + shift, input, wide)).collect())
    }

    fn span(self, sample: f32, input: usize, wide: f32) -> Span {
        // Samples outside of the image have no pixels.
        if !(sample >= 0.0 && sample <= input as f32) {
            return Span::default();
        }
        let inside = |at: f32| (at as i64).clamp(0, input as i64 - 1) as usize;
        let reach = self.window.radius() * wide;
        let (start, last) = (inside((sample - reach - 0.5).ceil()), inside((sample + reach - 0.5).floor()));
        let weight = |at: usize| self.window.at(((at as f32 + 0.5 - sample) * (1.0 / wide)).abs());
        let weights: Vec<f32> = (start..=last).map(weight).collect();
        let sum: f32 = weights.iter().sum();
        match sum.abs() >= 1000.0 * f32::MIN_POSITIVE {
            true => Span { start, weights: weights.iter().map(|weight| weight * (1.0 / sum)).collect() },
            false => Span::default(),
        }
    }
}

/// The spans of the derivative: for each pixel of the input, the pixels of the output that it contributes to.
fn turned(spans: &[Span], input: usize) -> Vec<Span> {
    let mut turned = vec![Span::default(); input];
    for (place, span) in spans.iter().enumerate() {
        for (i, &weight) in span.weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            let back = &mut turned[span.start + i];
            if back.weights.is_empty() {
                back.start = place;
            }
            back.weights.resize(place - back.start, 0.0);
            back.weights.push(weight);
        }
    }
    turned
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let sampling = Sampling::of(setup)?;
    for_reals!(setup, setup.dtype("T")?, T => {
        Ok(many(move |ctx, inputs| Ok(outputs![run::<T>(ctx, sampling, inputs)?])).heavy())
    })
}

fn run<T: Pixel>(ctx: &Ctx<'_>, sampling: Sampling, mut inputs: Inputs) -> Result<Tensor> {
    let (images, size) = (inputs.tensor(0)?, inputs.tensor(1)?);
    if images.shape().rank() == 4 {
        check_size(&size)?;
    }
    let sizes = Sizes::new(&images, &size)?;
    let [scale, shift] = [two(&inputs.tensor(2)?)?, two(&inputs.tensor(3)?)?];
    check_scale(scale)?;
    if sizes.batch == 0 {
        return Tensor::zeros::<f32>(sizes.resized_shape());
    }
    let spans = |axis: usize| sampling.spans(sizes.resized[axis], sizes.original[axis], scale[axis], shift[axis]);
    let middle = along_rows(ctx.pool(), &sizes, &spans(0)?, images.values::<T>()?)?;
    along_cols(ctx.pool(), &sizes, &spans(1)?, middle.values::<f32>()?)
}

/// The names in these errors differ from those of other resizing ops.
fn check_size(size: &Tensor) -> Result<()> {
    match size.shape().dims() {
        [2] => Ok(()),
        [_] => Err(invalid!("output_shape_t must have two elements{}", size.shape())),
        _ => Err(invalid!("output_shape_t must be 1-dimensional{}", size.shape())),
    }
}

fn check_scale(scale: [f32; 2]) -> Result<()> {
    match scale.iter().all(|&scale| scale > 0.0) {
        true => Ok(()),
        false => Err(invalid!("Scale must be greater than zero.")),
    }
}

fn two(tensor: &Tensor) -> Result<[f32; 2]> {
    if tensor.shape().rank() != 1 {
        return Err(invalid!("t must be 1-dimensional{}", tensor.shape()));
    }
    match *tensor.values::<f32>()? {
        [rows, cols] => Ok([rows, cols]),
        _ => Err(invalid!("t must have two elements{}", tensor.shape())),
    }
}

/// The images with their rows summed up by spans.
fn along_rows<T: Pixel>(pool: &Pool, sizes: &Sizes, spans: &[Span], images: &[T]) -> Result<Tensor> {
    let [height, width] = sizes.original;
    let (rows, line) = (spans.len(), width * sizes.channels);
    let mut out = Tensor::zeros::<f32>(Shape::from([sizes.batch, rows, width, sizes.channels]))?;
    let cost = cost(spans, line);
    math::parallel::split_rows_mut(pool, cost, out.values_mut::<f32>()?, line.max(1), |first, out| {
        for (i, out) in out.chunks_exact_mut(line).enumerate() {
            let (image, span) = ((first + i) / rows, &spans[(first + i) % rows]);
            for (place, &weight) in span.weights.iter().enumerate() {
                let pixels = &images[(image * height + span.start + place) * line..][..line];
                out.iter_mut().zip(pixels).for_each(|(out, pixel)| *out += weight * pixel.to_f32());
            }
        }
    });
    Ok(out)
}

/// The images with their columns summed up by spans.
fn along_cols(pool: &Pool, sizes: &Sizes, spans: &[Span], images: &[f32]) -> Result<Tensor> {
    let (channels, line, before) = (sizes.channels, spans.len() * sizes.channels, sizes.original[1] * sizes.channels);
    let mut out = Tensor::zeros::<f32>(Shape::from([sizes.batch, sizes.resized[0], spans.len(), channels]))?;
    math::parallel::split_rows_mut(pool, cost(spans, line), out.values_mut::<f32>()?, line.max(1), |first, out| {
        for (i, out) in out.chunks_exact_mut(line).enumerate() {
            let pixels = &images[(first + i) * before..][..before];
            for (out, span) in out.chunks_exact_mut(channels).zip(spans) {
                let taken = pixels[span.start * channels..].chunks_exact(channels);
                for (&weight, pixel) in span.weights.iter().zip(taken) {
                    out.iter_mut().zip(pixel).for_each(|(out, &pixel)| *out += weight * pixel);
                }
            }
        }
    });
    Ok(out)
}

fn cost(spans: &[Span], line: usize) -> f32 {
    (line * spans.first().map_or(1, |span| span.weights.len().max(1))) as f32
}

fn grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let sampling = Sampling::of(setup)?;
    Ok(many(move |ctx, inputs| Ok(outputs![run_grad(ctx, sampling, inputs)?])).heavy())
}

fn run_grad(ctx: &Ctx<'_>, sampling: Sampling, mut inputs: Inputs) -> Result<Tensor> {
    let (grads, original) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let &[batch, rows, cols, channels] = grads.shape().dims() else {
        return Err(invalid!("input_grad must be 4-dimensional{}", grads.shape()));
    };
    let &[_, height, width, _] = original.shape().dims() else {
        return Err(invalid!("original_image must be 4-dimensional{}", original.shape()));
    };
    let shape = Shape::checked(&[batch, height, width, channels].map(|size| size as i64))?;
    let [scale, shift] = [two(&inputs.tensor(2)?)?, two(&inputs.tensor(3)?)?];
    check_scale(scale)?;
    if shape.elements() == 0 || grads.elements() == 0 {
        return Tensor::zeros::<f32>(shape);
    }
    // The gradients take the place of the images, and the image that of the result.
    let sizes = Sizes { batch, original: [rows, cols], resized: [height, width], channels };
    let spans = |axis: usize| {
        let spans = sampling.spans(sizes.original[axis], sizes.resized[axis], scale[axis], shift[axis])?;
        Ok::<_, status::Error>(turned(&spans, sizes.resized[axis]))
    };
    let middle = along_rows(ctx.pool(), &sizes, &spans(0)?, grads.values::<f32>()?)?;
    along_cols(ctx.pool(), &sizes, &spans(1)?, middle.values::<f32>()?)
}

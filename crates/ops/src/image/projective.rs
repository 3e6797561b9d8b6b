//! Projective transforms of images.

use super::pixel::Pixel;
use super::resizing::sized_shape;
use crate::array::concat::concat;
use crate::array::constant::constant;
use crate::array::reshape::reshape_to;
use crate::linalg::inverse::matrix_inverse;
use crate::nn::copied;
use graph::{Node, Output};
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ImageProjectiveTransformV2(images: dtype, transforms: float, output_shape: int32) -> \
              transformed_images: dtype; dtype: {uint8, int32, int64, half, bfloat16, float, double}; \
              interpolation: string; fill_mode: string = \"CONSTANT\"",
        shape,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ImageProjectiveTransformV3(images: dtype, transforms: float, output_shape: int32, fill_value: float) -> \
              transformed_images: dtype; dtype: {uint8, int32, int64, half, bfloat16, float, double}; \
              interpolation: string; fill_mode: string = \"CONSTANT\"",
        shape,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN,
    },
];

/// Images of `output_shape`, whose pixel `(x, y)` is taken from the place to which a projective transform `[a0, a1, a2,
/// b0, b1, b2, c0, c1]` maps it; `interpolation` is `NEAREST` or `BILINEAR`.
pub fn image_projective_transform(
    images: &Output,
    transforms: &Output,
    output_shape: &Output,
    interpolation: &str,
) -> Output {
    let op = images.scope().op("ImageProjectiveTransformV2").input(images).input(transforms).input(output_shape);
    op.attr("interpolation", interpolation).output()
}

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    sized_shape(query, 2)
}

/// The gradient is transformed back, with the inverse matrices.
fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (images, scope) = (op.input(0), dy.scope());
    let shape = scope.op("Shape").input(&images).output();
    let size = slice(&shape, &[1], &[2]);
    let builder = scope.op(&op.op()).input(dy).input(&inverted(&op.input(1))).input(&size);
    if op.op() == "ImageProjectiveTransformV2" {
        let back = copied(builder, op, &["interpolation", "fill_mode"])?.output();
        return Ok(grads![back, NoGradient, NoGradient]);
    }
    let builder = builder.input(&constant(scope, Tensor::scalar(0f32)));
    let back = copied(builder, op, &["interpolation", "fill_mode"])?.output();
    Ok(grads![back, NoGradient, NoGradient, NoGradient])
}

/// The inverses of flat transforms: of nine numbers of a matrix, the last is always one.
fn inverted(transforms: &Output) -> Output {
    let scope = transforms.scope();
    let ones = scope.op("OnesLike").input(&slice(transforms, &[0, 0], &[-1, 1])).output();
    let matrices = reshape_to(&concat(scope, &[transforms.clone(), ones], 1), &[-1, 3, 3]);
    let flat = reshape_to(&matrix_inverse(&matrices, false), &[-1, 9]);
    slice(&(&flat / &slice(&flat, &[0, 8], &[-1, 1])), &[0, 0], &[-1, 8])
}

fn slice(x: &Output, begin: &[i32], size: &[i32]) -> Output {
    let [begin, size] = [begin, size].map(|numbers| constant(x.scope(), Tensor::vector(numbers)));
    x.scope().op("Slice").input(x).input(&begin).input(&size).output()
}

/// What stands at places outside of an image.
#[derive(Clone, Copy)]
enum Fill {
    /// The image, mirrored at its edges.
    Reflect,
    /// The image, repeated.
    Wrap,
    /// A value.
    Constant,
    /// The nearest pixel.
    Nearest,
}

impl Fill {
    /// The place along an axis of `len` pixels for any place. Sizes round as in TensorFlow, whole steps in 64 bits.
    fn place(self, at: f32, len: usize) -> f32 {
        let last = len as f32 - 1.0;
        let inside = |at: f32| at.max(0.0).min(last);
        match self {
            Fill::Constant => at,
            Fill::Nearest => inside(at),
            _ if len <= 1 && !(at >= 0.0 && at <= last) => inside(0.0),
            Fill::Reflect => inside(reflected(at, len as f32)),
            Fill::Wrap if at < 0.0 => inside(at + len as f32 * ((-at / last).trunc() + 1.0)),
            Fill::Wrap if at > last => inside(at - len as f32 * (at / last).trunc()),
            Fill::Wrap => inside(at),
        }
    }
}

/// A place behind an edge in the mirrored image.
fn reflected(at: f32, len: f32) -> f32 {
    let both = 2.0 * len;
    if at < 0.0 {
        let at = both * (-at / both).trunc() + at;
        return if at < -len { at + both } else { -at - 1.0 };
    }
    if at <= len - 1.0 {
        return at;
    }
    let at = at - both * (at / both).trunc();
    if at >= len { both - at - 1.0 } else { at }
}

/// The attributes.
#[derive(Clone, Copy)]
struct Mode {
    bilinear: bool,
    fill: Fill,
}

fn mode(setup: &Setup<'_>) -> Result<Mode> {
    let (interpolation, fill) = (setup.string("interpolation")?, setup.string("fill_mode")?);
    let bilinear = match interpolation.as_str() {
        "NEAREST" => false,
        "BILINEAR" => true,
        other => return Err(invalid!("Invalid interpolation {other}. Supported types: NEAREST, BILINEAR")),
    };
    let fill = match fill.as_str() {
        "REFLECT" => Fill::Reflect,
        "WRAP" => Fill::Wrap,
        "CONSTANT" => Fill::Constant,
        "NEAREST" => Fill::Nearest,
        other => {
            return Err(invalid!("Invalid mode {other}. Supported types: REFLECT, WRAP, CONSTANT, NEAREST"));
        }
    };
    Ok(Mode { bilinear, fill })
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let mode = mode(setup)?;
    for_types!(setup, setup.dtype("dtype")?, [u8, i32, i64, f16, bf16, f32, f64], T => {
        Ok(many(move |ctx, inputs| Ok(outputs![run::<T>(ctx, mode, inputs)?])).heavy())
    })
}

fn run<T: Pixel>(ctx: &Ctx<'_>, mode: Mode, mut inputs: Inputs) -> Result<Tensor> {
    let (images, transforms, size) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let &[batch, height, width, channels] = images.shape().dims() else {
        return Err(invalid!("Input images must have rank 4"));
    };
    if !matches!(*transforms.shape().dims(), [count, 8] if count == batch || count == 1) {
        return Err(invalid!("Input transform should be num_images x 8 or 1 x 8"));
    }
    let [rows, cols] = output_size(&size)?;
    let fill = if inputs.len() > 3 { fill_value::<T>(&inputs.tensor(3)?)? } else { T::from_f32(0.0) };
    let shape = Shape::checked(&[batch as i64, rows.into(), cols.into(), channels as i64])?;
    let mut out = Tensor::scratch::<T>(shape)?;
    let (images, transforms) = (images.values::<T>()?, transforms.values::<f32>()?);
    let (line, rows) = (cols as usize * channels, rows as usize);
    if out.elements() == 0 {
        return Ok(out);
    }
    math::parallel::split_rows_mut(ctx.pool(), 8.0 * line as f32, out.values_mut::<T>()?, line, |first, out| {
        for (i, out) in out.chunks_exact_mut(line).enumerate() {
            let (number, y) = ((first + i) / rows, (first + i) % rows);
            let pixels = &images[number * height * width * channels..][..height * width * channels];
            let image = Image { pixels, height, width, channels, fill, mode };
            let transform = &transforms[if transforms.len() == 8 { 0 } else { 8 * number }..][..8];
            for (x, out) in out.chunks_exact_mut(channels).enumerate() {
                image.pixel(source(transform, x as f32, y as f32), out);
            }
        }
    });
    Ok(out)
}

fn output_size(size: &Tensor) -> Result<[i32; 2]> {
    if size.shape().rank() != 1 {
        return Err(invalid!("output shape must be 1-dimensional{}", size.shape()));
    }
    match *size.values::<i32>()? {
        [rows, cols] if rows > 0 && cols > 0 => Ok([rows, cols]),
        [_, _] => Err(invalid!("output dimensions must be positive")),
        _ => Err(invalid!("output shape must have two elements{}", size.shape())),
    }
}

fn fill_value<T: Pixel>(value: &Tensor) -> Result<T> {
    if value.shape().rank() != 0 {
        return Err(invalid!("fill_value must be a scalar{}", value.shape()));
    }
    Ok(T::from_f32(value.to_scalar::<f32>()?))
}

/// The place `(y, x)` that a transform maps a pixel to; none at infinity.
fn source(transform: &[f32], x: f32, y: f32) -> Option<(f32, f32)> {
    let t = transform;
    let scale = t[6] * x + t[7] * y + 1.0;
    let place = |at: usize| (t[at] * x + t[at + 1] * y + t[at + 2]) / scale;
    (scale != 0.0).then(|| (place(3), place(0)))
}

/// One image, read at any place.
struct Image<'a, T> {
    pixels: &'a [T],
    height: usize,
    width: usize,
    channels: usize,
    fill: T,
    mode: Mode,
}

impl<T: Pixel> Image<'_, T> {
    /// Writes all channels of the image at a place.
    fn pixel(&self, place: Option<(f32, f32)>, out: &mut [T]) {
        let Some((y, x)) = place else { return out.fill(self.fill) };
        let (y, x) = (self.mode.fill.place(y, self.height), self.mode.fill.place(x, self.width));
        if !self.mode.bilinear {
            let at = self.at(y.round(), x.round());
            return out.iter_mut().enumerate().for_each(|(c, out)| *out = self.read(at, c));
        }
        let (top, left) = (y.floor(), x.floor());
        let (bottom, right) = (top + 1.0, left + 1.0);
        let corners = [(top, left), (top, right), (bottom, left), (bottom, right)].map(|(y, x)| self.at(y, x));
        for (c, out) in out.iter_mut().enumerate() {
            let [a, b, d, e] = corners.map(|corner| self.read(corner, c).to_f32());
            let (above, below) = ((right - x) * a + (x - left) * b, (right - x) * d + (x - left) * e);
            *out = T::from_f32((bottom - y) * above + (y - top) * below);
        }
    }

    /// Where the pixel at a whole place begins; none outside of the image.
    fn at(&self, y: f32, x: f32) -> Option<usize> {
        let inside = |at: f32, len: usize| (at >= 0.0 && at < len as f32).then_some(at as usize).filter(|&at| at < len);
        Some((inside(y, self.height)? * self.width + inside(x, self.width)?) * self.channels)
    }

    fn read(&self, at: Option<usize>, channel: usize) -> T {
        at.map_or(self.fill, |at| self.pixels[at + channel])
    }
}

//! FusedPadConv2D and FusedResizeAndPadConv2D: convolution of images that are resized and get mirrored borders.

use super::conv::run_forward;
use super::convolved::Convolved;
use super::geometry::{Geometry, Layout, Padding};
use crate::image::resizing::{Mapping, two_sizes};
use crate::quantized::conv::Window;
use math::gemm::Epilogue;
use op::{Ctx, Grad, Inputs, Kernel, Op, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use std::ops::{Add, Mul, Sub};
use tensor::{PartialShape, Shape, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "FusedPadConv2D(input: T, paddings: int32, filter: T) -> output: T; T: {half, bfloat16, float, double}; \
              mode: {\"REFLECT\", \"SYMMETRIC\"}; strides: list(int); padding: {\"SAME\", \"VALID\"}",
        shape,
        grad: Grad::Unknown,
        kernel: |setup| kernel(setup, false),
        facts: PLAIN,
    },
    Op {
        def: "FusedResizeAndPadConv2D(input: T, size: int32, paddings: int32, filter: T) -> output: T; \
              T: {half, float, double}; resize_align_corners: bool = false; mode: {\"REFLECT\", \"SYMMETRIC\"}; \
              strides: list(int); padding: {\"SAME\", \"VALID\"}",
        shape,
        grad: Grad::Unknown,
        kernel: |setup| kernel(setup, true),
        facts: PLAIN,
    },
];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(query.inputs[0].rank().unwrap_or(4))])
}

/// A float in whose arithmetic pixels are interpolated.
trait Pixel: Convolved + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    fn of(value: f32) -> Self;
}

macro_rules! pixels {
    ($($float:ty, $of:expr;)*) => {$(
        impl Pixel for $float {
            fn of(value: f32) -> $float {
                let of: fn(f32) -> $float = $of;
                of(value)
            }
        }
    )*};
}

pixels! {
    f32, |value| value;
    f64, |value| value.into();
    f16, f16::from_f32;
    bf16, bf16::from_f32;
}

/// The attributes of a node.
#[derive(Clone, Copy)]
struct Attributes {
    resized: Option<Mapping>,
    /// One if the pixel at the edge is not repeated.
    skipped: i64,
    strides: [i64; 2],
    same: bool,
}

fn kernel(setup: &Setup<'_>, resized: bool) -> Result<Kernel> {
    let &[batch, rows, cols, depth] = setup.ints("strides")?.as_slice() else {
        return Err(invalid!("Sliding window strides field must specify 4 dimensions"));
    };
    if batch != 1 || depth != 1 {
        return Err(invalid!("Current implementation does not yet support strides in the batch and depth dimensions."));
    }
    let mapping = match resized {
        true => Some(Mapping { align_corners: setup.bool("resize_align_corners")?, half_pixel_centers: false }),
        false => None,
    };
    let attributes = Attributes {
        resized: mapping,
        skipped: (setup.string("mode")? == "REFLECT").into(),
        strides: [rows, cols],
        same: setup.string("padding")? == "SAME",
    };
    for_floats!(setup, setup.dtype("T")?, T => Ok(many(move |ctx, mut inputs| {
        Ok(outputs![run::<T>(ctx, &attributes, &mut inputs)?])
    })
    .heavy()))
}

fn run<T: Pixel>(ctx: &Ctx<'_>, attributes: &Attributes, inputs: &mut Inputs) -> Result<Tensor> {
    let first = usize::from(attributes.resized.is_some());
    let (input, paddings, filter) = (inputs.tensor(0)?, inputs.tensor(first + 1)?, inputs.tensor(first + 2)?);
    if input.elements() == 0 {
        return Err(invalid!("Input tensor can't be empty"));
    }
    let &[batch, height, width, depth] = input.shape().dims() else {
        return Err(invalid!("input must be 4-dimensional{}", input.shape()));
    };
    let mut resized = [height, width];
    let mut scales = [1.0; 2];
    if let Some(mapping) = attributes.resized {
        let sizes = two_sizes(inputs.look(1)?)?;
        if sizes.iter().any(|&size| size <= 0) {
            return Err(invalid!("output dimensions must be positive"));
        }
        resized = sizes.map(|size| size as usize);
        scales = [mapping.scale(height, resized[0]), mapping.scale(width, resized[1])];
    }
    let borders = borders(&paddings, [batch, resized[0], resized[1], depth], attributes.skipped)?;
    let padded = [0, 1].map(|axis| borders[axis][0] + resized[axis] + borders[axis][1]);
    check_filter(filter.shape(), padded, depth)?;
    let window =
        |axis: usize| Window::of(padded[axis], filter.shape()[axis], attributes.strides[axis], attributes.same);
    let windows = [window(0)?, window(1)?];
    if batch * windows[0].output * windows[1].output * filter.shape()[3] == 0 {
        return Err(invalid!("Output tensor can't be empty"));
    }
    let axis = |axis: usize| Axis {
        size: [height, width][axis],
        resized: resized[axis],
        before: borders[axis][0],
        skipped: attributes.skipped,
        scale: scales[axis],
        window: windows[axis],
    };
    let image = sampled::<T>(&input, [axis(0), axis(1)], attributes.resized.is_some())?;
    let strides = [1, windows[0].stride, windows[1].stride];
    let layout = Layout { channels_first: false, spatial: 2 };
    let geometry = Geometry { layout, strides, dilations: [1; 3], padding: Padding::Valid };
    run_forward::<T>(ctx, &geometry, image, &filter, Epilogue::NONE)
}

/// How many pixels are added before and after both axes of the image.
fn borders(paddings: &Tensor, resized: [usize; 4], skipped: i64) -> Result<[[usize; 2]; 2]> {
    let shape = paddings.shape();
    if shape.rank() != 2 || shape[1] != 2 {
        return Err(invalid!("paddings must be a matrix with 2 columns: {shape}"));
    }
    if shape[0] != 4 {
        let resized = Shape::from(resized);
        return Err(invalid!("The first dimension of paddings must be the rank of inputs: 4 {shape} {resized}"));
    }
    let values = paddings.values::<i32>()?;
    for (&size, pair) in resized.iter().zip(values.chunks_exact(2)) {
        let (before, after, size) = (i64::from(pair[0]), i64::from(pair[1]), size as i64);
        if before < 0 || after < 0 {
            return Err(invalid!("paddings must be non-negative: {before} {after}"));
        }
        if before.max(after) > size - skipped {
            return Err(match skipped {
                0 => invalid!(
                    "paddings must be no greater than the dimension size: {before}, {after} greater than {size}"
                ),
                _ => invalid!("paddings must be less than the dimension size: {before}, {after} not less than {size}"),
            });
        }
    }
    for (first, what) in [(0, "batches"), (6, "channels")] {
        if values[first..first + 2] != [0, 0] {
            return Err(invalid!("Fused mirror padding only support spatial padding, not {what}: {shape}"));
        }
    }
    Ok([[values[2], values[3]], [values[4], values[5]]].map(|pair| pair.map(|size| size as usize)))
}

fn check_filter(filter: &Shape, padded: [usize; 2], depth: usize) -> Result<()> {
    if filter.rank() != 4 {
        return Err(invalid!("filter must be 4-dimensional: {filter}"));
    }
    if depth != filter[2] {
        return Err(invalid!("input and filter must have the same depth: {depth} vs {}", filter[2]));
    }
    if padded.iter().any(|&size| size > i32::MAX as usize) {
        return Err(invalid!("Input rows too large"));
    }
    Ok(())
}

/// How the pixels of an axis are made of those of the input.
struct Axis {
    size: usize,
    resized: usize,
    before: usize,
    skipped: i64,
    scale: f32,
    window: Window,
}

/// Two pixels of the input, and the distance from the first.
struct Place {
    lower: usize,
    upper: usize,
    distance: f32,
}

impl Axis {
    /// The number of pixels that the windows cover.
    fn covered(&self) -> usize {
        (self.window.output - 1) * self.window.stride + self.window.filter
    }

    /// Where pixel `index` of those comes from; none outside the padded image.
    fn place(&self, index: usize) -> Option<Place> {
        let at = usize::try_from(index as i64 - self.window.before).ok().filter(|&at| at < self.window.input)?;
        let mut place = at as f32 - self.before as f32;
        if place < 0.0 {
            place = -(place + 1.0 - self.skipped as f32);
        } else if place >= self.resized as f32 {
            place = self.resized as f32 * 2.0 - (place + 1.0 + self.skipped as f32);
        }
        place *= self.scale;
        let last = self.size - 1;
        let (lower, upper) = ((place.floor() as usize).min(last), (place.ceil() as usize).min(last));
        Some(Place { lower, upper, distance: place - place.floor() })
    }
}

/// The images that the windows cover, without gaps between the pixels that are outside and inside.
fn sampled<T: Pixel>(input: &Tensor, axes: [Axis; 2], interpolated: bool) -> Result<Tensor> {
    let dims = input.shape().dims();
    let (batch, width, depth) = (dims[0], dims[2], dims[3]);
    let sizes = [batch, axes[0].covered(), axes[1].covered(), depth].map(|size| size as i64);
    let mut out = Tensor::zeros::<T>(Shape::checked(&sizes)?)?;
    let values = input.values::<T>()?;
    let [rows, cols] =
        [0, 1].map(|axis: usize| (0..axes[axis].covered()).map(|index| axes[axis].place(index)).collect::<Vec<_>>());
    for (i, pixel) in out.values_mut::<T>()?.chunks_exact_mut(depth).enumerate() {
        let (image, row, col) = (i / cols.len() / rows.len(), i / cols.len() % rows.len(), i % cols.len());
        let (Some(row), Some(col)) = (&rows[row], &cols[col]) else { continue };
        let corner = |y: usize, x: usize| &values[((image * axes[0].size + y) * width + x) * depth..][..depth];
        let [top_left, top_right] = [corner(row.lower, col.lower), corner(row.lower, col.upper)];
        if !interpolated {
            pixel.copy_from_slice(top_left);
            continue;
        }
        let [bottom_left, bottom_right] = [corner(row.upper, col.lower), corner(row.upper, col.upper)];
        let (x, y) = (T::of(col.distance), T::of(row.distance));
        for (c, pixel) in pixel.iter_mut().enumerate() {
            let top = top_left[c] + (top_right[c] - top_left[c]) * x;
            let bottom = bottom_left[c] + (bottom_right[c] - bottom_left[c]) * x;
            *pixel = top + (bottom - top) * y;
        }
    }
    Ok(out)
}

//! Convolutions over images and volumes, channels last.

mod depthwise;
mod filter;
mod shape;
mod stencil;
mod widened;

pub use depthwise::{depthwise, depthwise_grad_filter, depthwise_grad_input};
pub use filter::grad_filter;
pub use shape::{Axis, ConvShape};
pub use widened::{HalfFloat, half_forward, half_grad_filter, half_grad_input};

use crate::Pool;
use crate::gemm::kernel::Finish;
use crate::gemm::{Epilogue, Matrix, Real, Span, pack, scratch};
use std::ops::Range;
use stencil::{Filters, Stencil, correlate, is_narrow};

/// A number over which convolutions are defined.
#[allow(private_bounds)]
pub trait Float: Real {}
impl Float for f32 {}
impl Float for f64 {}

/// `out = epilogue(input * filter)`: input `[batch, …, channels]`, filter `[…, filter_channels, out_channels]`.
///
/// # Panics
/// If a slice does not have the size that `shape` says.
pub fn forward<T: Float>(
    pool: &Pool,
    shape: &ConvShape,
    input: &[T],
    filter: &[T],
    epilogue: Epilogue<'_, T>,
    out: &mut [T],
) {
    check(shape, input.len(), filter.len(), out.len());
    assert!(epilogue.bias.is_none_or(|bias| bias.len() == shape.out_channels), "bias needs one number per filter");
    if out.is_empty() {
        return;
    }
    if is_product(shape) {
        let lhs = Matrix::new(input, input.len() / shape.channels, shape.channels);
        return T::product(pool, lhs, Matrix::new(filter, shape.channels, shape.out_channels), epilogue, out);
    }
    let stencil = forward_stencil(shape);
    let keys = shape.filter.map(|size| (0..size).collect());
    let source = Source { shape, filter, keys, transposed: false };
    let bias = epilogue.bias.map_or(std::ptr::null(), |bias| bias.as_ptr());
    let finish = Finish { bias, relu: epilogue.relu };
    source.packed(pool, &stencil, |filters| correlate(pool, &stencil, input, filters, finish, Span::new(out)));
}

/// The derivative by the input: `out` takes the input's shape, `grad` has that of the result.
///
/// # Panics
/// If a slice does not have the size that `shape` says.
pub fn grad_input<T: Float>(pool: &Pool, shape: &ConvShape, filter: &[T], grad: &[T], out: &mut [T]) {
    check(shape, out.len(), filter.len(), grad.len());
    if out.is_empty() {
        return;
    }
    if grad.is_empty() {
        return out.fill(T::ZERO);
    }
    if is_product(shape) {
        let lhs = Matrix::new(grad, grad.len() / shape.out_channels, shape.out_channels);
        let rhs = Matrix::new(filter, shape.channels, shape.out_channels).transposed();
        return T::product(pool, lhs, rhs, Epilogue::NONE, out);
    }
    // Points whose places agree modulo the stride see the same part of the filter.
    for z in 0..shape.stride[0].min(shape.input[0]) {
        for y in 0..shape.stride[1].min(shape.input[1]) {
            for x in 0..shape.stride[2].min(shape.input[2]) {
                grad_input_phase(pool, shape, [z, y, x], filter, grad, out);
            }
        }
    }
}

/// The derivative at the points `phase + n * stride`.
fn grad_input_phase<T: Float>(
    pool: &Pool,
    shape: &ConvShape,
    phase: [usize; 3],
    filter: &[T],
    grad: &[T],
    out: &mut [T],
) {
    let axes: [Phase; 3] = std::array::from_fn(|axis| Phase::new(shape, axis, phase[axis]));
    let points: [usize; 3] = std::array::from_fn(|i| (shape.input[i] - phase[i]).div_ceil(shape.stride[i]));
    let whole = shape.stride == [1; 3];
    if axes.iter().any(|axis| axis.keys.is_empty()) {
        return spread(shape, phase, points, None, out);
    }
    let stencil = Stencil {
        batch: shape.batch,
        input: shape.output,
        channels: shape.out_channels,
        group_channels: shape.out_channels / shape.groups(),
        taps: axes.each_ref().map(|axis| axis.taps.clone()),
        origin: axes.each_ref().map(|axis| axis.origin),
        stride: [1; 3],
        points,
    };
    let source = Source { shape, filter, keys: axes.map(|axis| axis.keys), transposed: true };
    source.packed(pool, &stencil, |filters| {
        if whole {
            return correlate(pool, &stencil, grad, filters, Finish::NONE, Span::new(out));
        }
        let len = shape.batch * points.iter().product::<usize>() * shape.channels;
        let mut part = vec![T::ZERO; len];
        correlate(pool, &stencil, grad, filters, Finish::NONE, Span::new(&mut part));
        spread(shape, phase, points, Some(&part), out);
    });
}

/// Which places of the filter meet the points of a phase along one axis, and where they look.
struct Phase {
    keys: Vec<usize>,
    taps: Vec<usize>,
    origin: isize,
}

impl Phase {
    fn new(shape: &ConvShape, axis: usize, phase: usize) -> Phase {
        let stride = shape.stride[axis] as isize;
        let from = (phase + shape.pad_before[axis]) as isize;
        let place = |key: &usize| from - (key * shape.dilation[axis]) as isize;
        let keys: Vec<usize> = (0..shape.filter[axis]).rev().filter(|key| place(key) % stride == 0).collect();
        let origin = keys.first().map_or(0, |key| place(key).div_euclid(stride));
        let taps = keys.iter().map(|key| (place(key).div_euclid(stride) - origin) as usize).collect();
        Phase { keys, taps, origin }
    }
}

/// Puts the points of a phase to their places; zeros if there are none.
fn spread<T: Float>(shape: &ConvShape, phase: [usize; 3], points: [usize; 3], part: Option<&[T]>, out: &mut [T]) {
    let [depth, height, width] = shape.input;
    let channels = shape.channels;
    let mut from = 0;
    for image in 0..shape.batch {
        for z in (phase[0]..depth).step_by(shape.stride[0]) {
            for y in (phase[1]..height).step_by(shape.stride[1]) {
                let start = ((image * depth + z) * height + y) * width * channels;
                let row = &mut out[start..start + width * channels];
                let places = row.chunks_exact_mut(channels).skip(phase[2]).step_by(shape.stride[2]);
                for (i, place) in places.enumerate() {
                    match part {
                        Some(part) => place.copy_from_slice(&part[from + i * channels..][..channels]),
                        None => place.fill(T::ZERO),
                    }
                }
                from += points[2] * channels;
            }
        }
    }
}

/// The filter as the right side of a product, its places in a given order.
struct Source<'a, T> {
    shape: &'a ConvShape,
    filter: &'a [T],
    /// Which places, along each axis.
    keys: [Vec<usize>; 3],
    /// Whether the depth runs over filters and the columns over channels.
    transposed: bool,
}

impl<T: Float> Source<'_, T> {
    fn packed(&self, pool: &Pool, stencil: &Stencil, body: impl FnOnce(&Filters<'_, T>)) {
        let shape = self.shape;
        let out_each = shape.out_channels / shape.groups();
        let cols = if self.transposed { shape.filter_channels } else { out_each };
        let narrow = is_narrow(stencil, cols);
        let depth = stencil.depth();
        let group_len = if narrow { cols * depth } else { pack::rhs_len::<T>(cols, depth) };
        // Blocks of columns are packed by themselves, all places of the filter one below the other.
        let width = if narrow { cols } else { 2 * T::PANEL };
        let blocks = cols.div_ceil(width);
        let small = depth * cols < 1 << 15;
        scratch::with::<T, _>(shape.groups() * group_len, |packed| {
            let span = Span::new(packed);
            pool.run(if small { 1 } else { shape.groups() * blocks }, &|chunk| {
                for block in if small { 0..shape.groups() * blocks } else { chunk..chunk + 1 } {
                    let (group, col) = (block / blocks, block % blocks * width);
                    let cols = col..(col + width).min(cols);
                    let start = group * group_len + col * depth;
                    let len = if narrow { group_len } else { pack::rhs_len::<T>(cols.len(), depth) };
                    // SAFETY: each block of columns of each group belongs to one chunk.
                    self.pack_block(group, cols, narrow, depth, unsafe { span.slice(start, len) });
                }
            });
            body(&Filters { packed, cols, narrow });
        });
    }

    /// Packs some columns of a group, all places of the filter.
    fn pack_block(&self, group: usize, cols: Range<usize>, narrow: bool, depth: usize, dst: &mut [T]) {
        let places = self.keys.iter().map(Vec::len).product();
        for place in 0..places {
            let matrix = self.tap(group, place);
            if narrow {
                pack_columns(&matrix, depth, &mut dst[place * matrix.rows..]);
            } else {
                let dst = &mut dst[place * matrix.rows * T::PANEL..];
                pack::rhs_strided(&matrix, 0..matrix.rows, cols.clone(), depth * T::PANEL, dst);
            }
        }
    }

    /// One place of the filter as a matrix.
    fn tap(&self, group: usize, tap: usize) -> Matrix<'_, T> {
        let shape = self.shape;
        let [_, height, width] = self.keys.each_ref().map(Vec::len);
        let (z, y, x) =
            (self.keys[0][tap / width / height], self.keys[1][tap / width % height], self.keys[2][tap % width]);
        let place = (z * shape.filter[1] + y) * shape.filter[2] + x;
        let out_each = shape.out_channels / shape.groups();
        let start = place * shape.filter_channels * shape.out_channels + group * out_each;
        let matrix = Matrix {
            values: &self.filter[start..],
            rows: shape.filter_channels,
            cols: out_each,
            row_stride: shape.out_channels,
            col_stride: 1,
        };
        if self.transposed { matrix.transposed() } else { matrix }
    }
}

/// Columns one after the other, `stride` numbers apart.
fn pack_columns<T: Float>(matrix: &Matrix<'_, T>, stride: usize, dst: &mut [T]) {
    for col in 0..matrix.cols {
        for (row, dst) in dst[col * stride..][..matrix.rows].iter_mut().enumerate() {
            *dst = matrix.values[row * matrix.row_stride + col * matrix.col_stride];
        }
    }
}

fn forward_stencil(shape: &ConvShape) -> Stencil {
    Stencil {
        batch: shape.batch,
        input: shape.input,
        channels: shape.channels,
        group_channels: shape.filter_channels,
        taps: std::array::from_fn(|i| (0..shape.filter[i]).map(|key| key * shape.dilation[i]).collect()),
        origin: shape.pad_before.map(|pad| -(pad as isize)),
        stride: shape.stride,
        points: shape.output,
    }
}

/// Whether each point of the result sees one point of the input, in order.
fn is_product(shape: &ConvShape) -> bool {
    let one = [1; 3];
    shape.filter == one
        && shape.stride == one
        && shape.input == shape.output
        && shape.pad_before == [0; 3]
        && shape.groups() == 1
}

fn check(shape: &ConvShape, input: usize, filter: usize, output: usize) {
    assert_eq!(input, shape.input_len(), "images of a convolution have the wrong size");
    assert_eq!(filter, shape.filter_len(), "filter of a convolution has the wrong size");
    assert_eq!(output, shape.output_len(), "result of a convolution has the wrong size");
}

//! Convolutions in which every filter sees one channel.
//!
//! A filter of multiplier M repeats each channel M times; all three loops run over the repeated channels, and
//! are sums of products of rows. Images only: the depth of the shape is one.

use super::{ConvShape, Float, check};
use crate::Pool;
use crate::gemm::Span;
use std::borrow::Cow;

/// `out[…, c * M + m] = Σ input[…, c] * filter[…, c, m]`; the shape has one filter channel.
///
/// # Panics
/// If a slice does not have the size that `shape` says, or the shape is not that of such a convolution.
pub fn depthwise<T: Float>(pool: &Pool, shape: &ConvShape, input: &[T], filter: &[T], out: &mut [T]) {
    check_depthwise(shape, input.len(), filter.len(), out.len());
    let [_, height, width] = shape.output;
    let len = width * shape.out_channels;
    let out = Span::new(out);
    pool.run(if len == 0 { 0 } else { shape.batch * height }, &|line| {
        let (image, y) = (line / height, line % height);
        // SAFETY: each line of the result belongs to one chunk.
        let out = unsafe { out.slice(line * len, len) };
        out.fill(T::ZERO);
        for (ky, iy) in rows_seen(shape, y) {
            let row = repeated(shape, input_row(shape, input, image, iy));
            for kx in 0..shape.filter[2] {
                let meet = Meet::new(shape, kx);
                let products = Products { a: meet.input(shape, &row), b: filter_place(shape, filter, ky, kx) };
                products.add(&mut out[meet.out * shape.out_channels..], meet.steps(shape).output_first());
            }
        }
    });
}

/// The derivative by the input: `out` takes the input's shape.
///
/// # Panics
/// As `depthwise`.
pub fn depthwise_grad_input<T: Float>(pool: &Pool, shape: &ConvShape, filter: &[T], grad: &[T], out: &mut [T]) {
    check_depthwise(shape, out.len(), filter.len(), grad.len());
    let [_, height, width] = shape.input;
    let (len, wide) = (width * shape.channels, width * shape.out_channels);
    let multiplier = shape.out_channels / shape.channels;
    let out = Span::new(out);
    pool.run(if len == 0 { 0 } else { shape.batch * height }, &|line| {
        let (image, y) = (line / height, line % height);
        let mut sums = vec![T::ZERO; wide];
        for (ky, oy) in rows_seeing(shape, y) {
            let row = output_row(shape, grad, image, oy);
            for kx in 0..shape.filter[2] {
                let meet = Meet::new(shape, kx);
                let products =
                    Products { a: &row[meet.out * shape.out_channels..], b: filter_place(shape, filter, ky, kx) };
                products.add(meet.input_mut(shape, &mut sums), meet.steps(shape).input_first());
            }
        }
        // SAFETY: each line of the derivative belongs to one chunk.
        let out = unsafe { out.slice(line * len, len) };
        for (i, out) in out.iter_mut().enumerate() {
            *out = (0..multiplier).fold(T::ZERO, |sum, m| sum + sums[i * multiplier + m]);
        }
    });
}

/// The derivative by the filter: `out` takes the filter's shape.
///
/// # Panics
/// As `depthwise`.
pub fn depthwise_grad_filter<T: Float>(pool: &Pool, shape: &ConvShape, input: &[T], grad: &[T], out: &mut [T]) {
    check_depthwise(shape, input.len(), out.len(), grad.len());
    out.fill(T::ZERO);
    if input.is_empty() || grad.is_empty() || out.is_empty() {
        return;
    }
    let lines = shape.batch * shape.output[1];
    let (parts, len) = (lines.min(4 * pool.threads()), out.len());
    let mut sums = vec![T::ZERO; parts * len];
    let span = Span::new(&mut sums);
    pool.run(parts, &|part| {
        // SAFETY: each part has its own sums.
        let sums = unsafe { span.slice(part * len, len) };
        for line in part * lines / parts..(part + 1) * lines / parts {
            grad_filter_line(shape, input, grad, line, sums);
        }
    });
    for part in sums.chunks_exact(len) {
        out.iter_mut().zip(part).for_each(|(sum, &x)| *sum = *sum + x);
    }
}

/// What one line of the gradient contributes.
fn grad_filter_line<T: Float>(shape: &ConvShape, input: &[T], grad: &[T], line: usize, sums: &mut [T]) {
    let (image, y) = (line / shape.output[1], line % shape.output[1]);
    let grads = output_row(shape, grad, image, y);
    for (ky, iy) in rows_seen(shape, y) {
        let row = repeated(shape, input_row(shape, input, image, iy));
        for kx in 0..shape.filter[2] {
            let meet = Meet::new(shape, kx);
            let start = (ky * shape.filter[2] + kx) * shape.out_channels;
            let products = Products { a: meet.input(shape, &row), b: &grads[meet.out * shape.out_channels..] };
            products.add(&mut sums[start..start + shape.out_channels], meet.steps(shape).filter_first());
        }
    }
}

fn check_depthwise(shape: &ConvShape, input: usize, filter: usize, output: usize) {
    check(shape, input, filter, output);
    assert_eq!(shape.filter_channels, 1, "filters of a depthwise convolution see one channel");
    assert_eq!((shape.input[0], shape.filter[0], shape.output[0]), (1, 1, 1), "depthwise convolutions are over images");
}

/// Filter rows and the input rows they meet at an output row.
fn rows_seen(shape: &ConvShape, y: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..shape.filter[1]).filter_map(move |ky| {
        let row = (y * shape.stride[1] + ky * shape.dilation[1]).checked_sub(shape.pad_before[1])?;
        (row < shape.input[1]).then_some((ky, row))
    })
}

/// Filter rows and the output rows at which they meet an input row.
fn rows_seeing(shape: &ConvShape, y: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..shape.filter[1]).filter_map(move |ky| {
        let row = (y + shape.pad_before[1]).checked_sub(ky * shape.dilation[1])?;
        let met = row.is_multiple_of(shape.stride[1]) && row / shape.stride[1] < shape.output[1];
        met.then_some((ky, row / shape.stride[1]))
    })
}

fn input_row<'a, T>(shape: &ConvShape, input: &'a [T], image: usize, y: usize) -> &'a [T] {
    let len = shape.input[2] * shape.channels;
    &input[(image * shape.input[1] + y) * len..][..len]
}

fn output_row<'a, T>(shape: &ConvShape, grad: &'a [T], image: usize, y: usize) -> &'a [T] {
    let len = shape.output[2] * shape.out_channels;
    &grad[(image * shape.output[1] + y) * len..][..len]
}

fn filter_place<'a, T>(shape: &ConvShape, filter: &'a [T], ky: usize, kx: usize) -> &'a [T] {
    &filter[(ky * shape.filter[2] + kx) * shape.out_channels..][..shape.out_channels]
}

/// The row with each channel as often as there are filters for it.
fn repeated<'a, T: Float>(shape: &ConvShape, row: &'a [T]) -> Cow<'a, [T]> {
    match shape.out_channels / shape.channels {
        1 => Cow::Borrowed(row),
        times => row.iter().flat_map(|&x| std::iter::repeat_n(x, times)).collect(),
    }
}

/// The output columns at which one filter column meets the image, and the input column of the first.
struct Meet {
    out: usize,
    input: usize,
    count: usize,
}

impl Meet {
    fn new(shape: &ConvShape, kx: usize) -> Meet {
        let (stride, pad) = (shape.stride[2], shape.pad_before[2]);
        let at = kx * shape.dilation[2];
        let out = pad.saturating_sub(at).div_ceil(stride);
        let end = (shape.input[2] + pad).saturating_sub(at).div_ceil(stride).min(shape.output[2]);
        if out >= end {
            return Meet { out: 0, input: 0, count: 0 };
        }
        Meet { out, input: out * stride + at - pad, count: end - out }
    }

    fn input<'a, T>(&self, shape: &ConvShape, row: &'a [T]) -> &'a [T] {
        &row[self.input * shape.out_channels..]
    }

    fn input_mut<'a, T>(&self, shape: &ConvShape, row: &'a mut [T]) -> &'a mut [T] {
        &mut row[self.input * shape.out_channels..]
    }

    fn steps(&self, shape: &ConvShape) -> Steps {
        let width = shape.out_channels;
        Steps { count: self.count, width, dst: 0, a: width, b: width, input: shape.stride[2] * width }
    }
}

/// How to walk: `count` times `width` products, with a step for each operand.
struct Steps {
    count: usize,
    width: usize,
    dst: usize,
    a: usize,
    b: usize,
    input: usize,
}

impl Steps {
    /// Output += input * filter.
    fn output_first(self) -> Steps {
        Steps { dst: self.width, a: self.input, b: 0, ..self }
    }

    /// Input += output * filter.
    fn input_first(self) -> Steps {
        Steps { dst: self.input, a: self.width, b: 0, ..self }
    }

    /// Filter += input * output.
    fn filter_first(self) -> Steps {
        Steps { dst: 0, a: self.input, b: self.width, ..self }
    }
}

/// Two factors.
struct Products<'a, T> {
    a: &'a [T],
    b: &'a [T],
}

impl<T: Float> Products<'_, T> {
    fn add(&self, dst: &mut [T], steps: Steps) {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            // SAFETY: the instructions were just detected.
            return unsafe { self.add_avx2(dst, steps) };
        }
        self.add_plain(dst, steps);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn add_avx2(&self, dst: &mut [T], steps: Steps) {
        self.add_plain(dst, steps);
    }

    #[inline(always)]
    fn add_plain(&self, dst: &mut [T], steps: Steps) {
        for i in 0..steps.count {
            let dst = &mut dst[i * steps.dst..][..steps.width];
            let a = &self.a[i * steps.a..][..steps.width];
            let b = &self.b[i * steps.b..][..steps.width];
            for j in 0..steps.width {
                dst[j] = dst[j] + a[j] * b[j];
            }
        }
    }
}

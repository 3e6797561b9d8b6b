//! The derivative of max pooling in which all the largest numbers of a window take its gradient.

use crate::Pool;
use crate::parallel::split_rows_mut;
use crate::pooling::{PoolShape, Pooled};
use std::ops::Range;

/// Adds each gradient to every number of its window that `equals` the window's largest.
///
/// # Panics
/// If a slice does not have the size that `shape` says.
pub fn max_grad<T: Pooled>(
    pool: &Pool,
    shape: &PoolShape,
    input: &[T],
    output: &[T],
    grad: &[T],
    equals: impl Fn(T, T) -> bool + Sync,
    out: &mut [T],
) {
    assert!(input.len() == shape.input_len() && out.len() == input.len(), "images of a pooling have the wrong size");
    assert!(output.len() == shape.output_len() && grad.len() == output.len(), "results have the wrong size");
    out.fill(T::ZERO);
    if input.is_empty() || output.is_empty() {
        return;
    }
    let (image, each) = (input.len() / shape.batch, output.len() / shape.batch);
    let window: usize = shape.axes.iter().map(|axis| axis.filter).product();
    split_rows_mut(pool, (each * window) as f32, out, image, |first, out| {
        for (i, out) in out.chunks_exact_mut(image).enumerate() {
            let number = first + i;
            let input = &input[number * image..][..image];
            let mine = number * each..(number + 1) * each;
            one_image(shape, input, &output[mine.clone()], &grad[mine], &equals, out);
        }
    });
}

fn one_image<T: Pooled>(
    shape: &PoolShape,
    input: &[T],
    output: &[T],
    grad: &[T],
    equals: &impl Fn(T, T) -> bool,
    out: &mut [T],
) {
    let [_, height, width] = shape.output;
    let channels = shape.channels;
    for (point, (maxima, grads)) in output.chunks_exact(channels).zip(grad.chunks_exact(channels)).enumerate() {
        for z in seen(shape, 0, point / width / height) {
            for y in seen(shape, 1, point / width % height) {
                for x in seen(shape, 2, point % width) {
                    let at = ((z * shape.axes[1].input + y) * shape.axes[2].input + x) * channels;
                    for c in 0..channels {
                        if equals(input[at + c], maxima[c]) {
                            out[at + c] = out[at + c].plus(grads[c]);
                        }
                    }
                }
            }
        }
    }
}

/// Which inputs along an axis the output `at` sees.
fn seen(shape: &PoolShape, axis: usize, at: usize) -> Range<usize> {
    let axis = &shape.axes[axis];
    let start = at * axis.stride;
    let end = (start + axis.filter).saturating_sub(axis.pad.0).min(axis.input);
    start.saturating_sub(axis.pad.0).min(end)..end
}

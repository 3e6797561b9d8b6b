//! The mean of each window, over the numbers that are in the image, and the derivative.

use super::{Averaged, PoolShape};
use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::gemm::Span;

/// The mean of each window; zeros beyond the image do not count.
///
/// # Panics
/// If a slice does not have the size that `shape` says.
pub fn average<T: Averaged>(pool: &Pool, shape: &PoolShape, input: &[T], out: &mut [T]) {
    assert_eq!(input.len(), shape.input_len(), "images of a pooling have the wrong size");
    assert_eq!(out.len(), shape.output_len(), "result of a pooling has the wrong size");
    let (len, image) = (shape.output[2] * shape.channels, shape.image_len());
    let out = Span::new(out);
    shape.for_each(pool, if len == 0 { 0 } else { shape.lines() }, |line| {
        let (number, z, y) = shape.line(line);
        // SAFETY: each line of the result belongs to one chunk.
        let out = unsafe { out.slice(line * len, len) };
        vectorize(AverageLine { shape, image: &input[number * image..(number + 1) * image], z, y, out });
    });
}

struct AverageLine<'a, T> {
    shape: &'a PoolShape,
    image: &'a [T],
    z: usize,
    y: usize,
    out: &'a mut [T],
}

impl<T: Averaged> Loop for AverageLine<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let shape = self.shape;
        let mut sums = vec![T::NONE; shape.channels];
        for (x, out) in self.out.chunks_exact_mut(shape.channels).enumerate() {
            let mut count = 0;
            sums.fill(T::NONE);
            for z in shape.seen(0, self.z) {
                for y in shape.seen(1, self.y) {
                    for x in shape.seen(2, x) {
                        let src = &self.image[shape.input_at(z, y, x)..][..shape.channels];
                        sums.iter_mut().zip(src).for_each(|(sum, &x)| *sum = *sum + x.widen());
                        count += 1;
                    }
                }
            }
            out.iter_mut().zip(&sums).for_each(|(out, &sum)| *out = T::divide(sum, count));
        }
    }
}

/// The derivative by the input: each gradient is shared out over the numbers of its window.
///
/// # Panics
/// If a slice does not have the size that `shape` says.
pub fn average_grad<T: Averaged>(pool: &Pool, shape: &PoolShape, grad: &[T], out: &mut [T]) {
    assert_eq!(out.len(), shape.input_len(), "images of a pooling have the wrong size");
    assert_eq!(grad.len(), shape.output_len(), "gradient of a pooling has the wrong size");
    let [depth, height, width] = shape.axes.map(|axis| axis.input);
    let len = width * shape.channels;
    let grads = shape.output.iter().product::<usize>() * shape.channels;
    let out = Span::new(out);
    shape.for_each(pool, if len == 0 { 0 } else { shape.batch * depth * height }, |line| {
        let (plane, y) = (line / height, line % height);
        let (number, z) = (plane / depth, plane % depth);
        // SAFETY: each line of the derivative belongs to one chunk.
        let out = unsafe { out.slice(line * len, len) };
        vectorize(GradLine { shape, grad: &grad[number * grads..(number + 1) * grads], z, y, out });
    });
}

struct GradLine<'a, T> {
    shape: &'a PoolShape,
    grad: &'a [T],
    z: usize,
    y: usize,
    out: &'a mut [T],
}

impl<T: Averaged> Loop for GradLine<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let shape = self.shape;
        let [_, height, width] = shape.output;
        let mut sums = vec![T::NONE; self.out.len()];
        for z in shape.seeing(0, self.z) {
            for y in shape.seeing(1, self.y) {
                let rows = shape.seen(0, z).len() * shape.seen(1, y).len();
                for x in 0..width {
                    let seen = shape.seen(2, x);
                    let share = T::share(rows * seen.len());
                    let grad = &self.grad[((z * height + y) * width + x) * shape.channels..][..shape.channels];
                    for sums in
                        sums[seen.start * shape.channels..seen.end * shape.channels].chunks_exact_mut(shape.channels)
                    {
                        sums.iter_mut().zip(grad).for_each(|(sum, &grad)| *sum = *sum + grad.widen() * share);
                    }
                }
            }
        }
        self.out.iter_mut().zip(&sums).for_each(|(out, &sum)| *out = T::narrow(sum));
    }
}

//! The largest number of each window, where it was, and the derivatives.

use super::{PoolShape, Pooled};
use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::gemm::Span;

/// The largest number of each window; NaN is passed over.
///
/// # Panics
/// If a slice does not have the size that `shape` says.
pub fn max<T: Pooled>(pool: &Pool, shape: &PoolShape, input: &[T], out: &mut [T]) {
    check(shape, input.len(), out.len());
    let (len, image) = (shape.output[2] * shape.channels, shape.image_len());
    let out = Span::new(out);
    shape.for_each(pool, if len == 0 { 0 } else { shape.lines() }, |line| {
        let (number, z, y) = shape.line(line);
        // SAFETY: each line of the result belongs to one chunk.
        let out = unsafe { out.slice(line * len, len) };
        vectorize(MaxLine { shape, image: &input[number * image..(number + 1) * image], z, y, out });
    });
}

struct MaxLine<'a, T> {
    shape: &'a PoolShape,
    image: &'a [T],
    z: usize,
    y: usize,
    out: &'a mut [T],
}

impl<T: Pooled> Loop for MaxLine<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut window = Window::new(self.shape);
        for (x, out) in self.out.chunks_exact_mut(self.shape.channels).enumerate() {
            window.move_to([self.z, self.y, x]);
            let even = out.len() / LANES * LANES;
            let (blocks, rest) = out.split_at_mut(even);
            for (i, out) in blocks.chunks_exact_mut(LANES).enumerate() {
                out.copy_from_slice(&window.largest::<LANES>(self.image, i * LANES));
            }
            for (i, out) in rest.iter_mut().enumerate() {
                *out = window.largest::<1>(self.image, even + i)[0];
            }
        }
    }
}

/// Channels that are looked at together: their largest numbers stay in registers.
const LANES: usize = 16;

/// The largest number of each window and its place: `((batch * height + y) * width + x) * channels + c`, or
/// without the batch. Of equal ones the first; a NaN only if it is the first number of its window.
///
/// # Panics
/// If a slice does not have the size that `shape` says.
pub fn max_argmax<T: Pooled>(
    pool: &Pool,
    shape: &PoolShape,
    input: &[T],
    include_batch: bool,
    out: &mut [T],
    argmax: &mut [i64],
) {
    check(shape, input.len(), out.len());
    check(shape, input.len(), argmax.len());
    let (len, image) = (shape.output[2] * shape.channels, shape.image_len());
    let (out, argmax) = (Span::new(out), Span::new(argmax));
    shape.for_each(pool, if len == 0 { 0 } else { shape.lines() }, |line| {
        let (number, z, y) = shape.line(line);
        let values = &input[number * image..(number + 1) * image];
        // SAFETY: each line of both results belongs to one chunk.
        let (out, argmax) = unsafe { (out.slice(line * len, len), argmax.slice(line * len, len)) };
        let first = if include_batch { number * image } else { 0 };
        vectorize(ArgmaxLine { shape, image: values, z, y, first, out, argmax });
    });
}

struct ArgmaxLine<'a, T> {
    shape: &'a PoolShape,
    image: &'a [T],
    z: usize,
    y: usize,
    /// What the place of the image's first number is called.
    first: usize,
    out: &'a mut [T],
    argmax: &'a mut [i64],
}

impl<T: Pooled> Loop for ArgmaxLine<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let channels = self.shape.channels;
        let mut window = Window::new(self.shape);
        let points = self.out.chunks_exact_mut(channels).zip(self.argmax.chunks_exact_mut(channels));
        for (x, (out, argmax)) in points.enumerate() {
            window.find(self.image, [self.z, self.y, x]);
            out.copy_from_slice(&window.best);
            for (c, (argmax, &tap)) in argmax.iter_mut().zip(&window.taps).enumerate() {
                *argmax = window.places.get(tap as usize).map_or(-1, |place| (self.first + place + c) as i64);
            }
        }
    }
}

/// One window, and what was found in it.
struct Window<'a, T> {
    shape: &'a PoolShape,
    /// Where the points of the window begin in the image.
    places: Vec<usize>,
    best: Vec<T>,
    /// Which point each of the largest is.
    taps: Vec<u32>,
}

impl<'a, T: Pooled> Window<'a, T> {
    #[inline(always)]
    fn new(shape: &'a PoolShape) -> Self {
        Window { shape, places: Vec::new(), best: vec![T::LOWEST; shape.channels], taps: vec![0; shape.channels] }
    }

    /// Moves to the window of output `at`.
    #[inline(always)]
    fn move_to(&mut self, at: [usize; 3]) {
        let shape = self.shape;
        self.places.clear();
        for z in shape.seen(0, at[0]) {
            for y in shape.seen(1, at[1]) {
                self.places.extend(shape.seen(2, at[2]).map(|x| shape.input_at(z, y, x)));
            }
        }
    }

    /// The largest numbers of some channels.
    #[inline(always)]
    fn largest<const N: usize>(&self, image: &[T], channel: usize) -> [T; N] {
        let mut best = [T::LOWEST; N];
        for &place in &self.places {
            let src = &image[place + channel..][..N];
            for i in 0..N {
                best[i] = if best[i] < src[i] { src[i] } else { best[i] };
            }
        }
        best
    }

    /// Moves to the window of output `at` and finds the first largest number of every channel.
    #[inline(always)]
    fn find(&mut self, image: &[T], at: [usize; 3]) {
        self.move_to(at);
        let even = self.shape.channels / LANES * LANES;
        for channel in (0..even).step_by(LANES) {
            self.find_some::<LANES>(image, channel);
        }
        for channel in even..self.shape.channels {
            self.find_some::<1>(image, channel);
        }
    }

    #[inline(always)]
    fn find_some<const N: usize>(&mut self, image: &[T], channel: usize) {
        let mut best = [T::LOWEST; N];
        let mut taps = [0u32; N];
        if let Some(&first) = self.places.first() {
            best.copy_from_slice(&image[first + channel..][..N]);
        }
        for (tap, &place) in self.places.iter().enumerate().skip(1) {
            let src = &image[place + channel..][..N];
            for i in 0..N {
                let larger = best[i] < src[i];
                taps[i] = if larger { tap as u32 } else { taps[i] };
                best[i] = if larger { src[i] } else { best[i] };
            }
        }
        self.best[channel..channel + N].copy_from_slice(&best);
        self.taps[channel..channel + N].copy_from_slice(&taps);
    }
}

/// The derivative by the input: each gradient goes to the first largest number of its window.
///
/// # Panics
/// If a slice does not have the size that `shape` says.
pub fn max_grad<T: Pooled>(pool: &Pool, shape: &PoolShape, input: &[T], grad: &[T], out: &mut [T]) {
    check(shape, input.len(), grad.len());
    check(shape, out.len(), grad.len());
    let image = shape.image_len();
    let grads = shape.output.iter().product::<usize>() * shape.channels;
    let out = Span::new(out);
    shape.for_each(pool, if image == 0 { 0 } else { shape.batch }, |number| {
        let input = &input[number * image..(number + 1) * image];
        let grad = &grad[number * grads..(number + 1) * grads];
        // SAFETY: each image of the derivative belongs to one chunk.
        let out = unsafe { out.slice(number * image, image) };
        vectorize(MaxGrad { shape, input, grad, out });
    });
}

struct MaxGrad<'a, T> {
    shape: &'a PoolShape,
    input: &'a [T],
    grad: &'a [T],
    out: &'a mut [T],
}

impl<T: Pooled> Loop for MaxGrad<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let MaxGrad { shape, input, grad, out } = self;
        let [_, height, width] = shape.output;
        out.fill(T::ZERO);
        let mut window = Window::new(shape);
        for (point, grad) in grad.chunks_exact(shape.channels).enumerate() {
            let (line, x) = (point / width, point % width);
            window.find(input, [line / height, line % height, x]);
            // In a small window adding zeros to most is cheaper than finding each place.
            if window.places.len() <= 9 {
                for (tap, &place) in window.places.iter().enumerate() {
                    let out = &mut out[place..place + shape.channels];
                    for ((out, &found), &grad) in out.iter_mut().zip(&window.taps).zip(grad) {
                        *out = out.plus(if found == tap as u32 { grad } else { T::ZERO });
                    }
                }
            } else {
                for (c, (&tap, &grad)) in window.taps.iter().zip(grad).enumerate() {
                    let out = &mut out[window.places[tap as usize] + c];
                    *out = out.plus(grad);
                }
            }
        }
    }
}

/// The derivative of `max_grad` by its gradient: each output takes the number of `grad` at the first place where
/// the input equals the pooled `output`, or zero if there is none.
///
/// # Panics
/// If a slice does not have the size that `shape` says.
pub fn max_grad_grad<T: Pooled>(pool: &Pool, shape: &PoolShape, input: &[T], output: &[T], grad: &[T], out: &mut [T]) {
    check(shape, input.len(), output.len());
    check(shape, grad.len(), out.len());
    let (len, image) = (shape.output[2] * shape.channels, shape.image_len());
    let out = Span::new(out);
    shape.for_each(pool, if len == 0 { 0 } else { shape.lines() }, |line| {
        let (number, z, y) = shape.line(line);
        let (values, grad) = (&input[number * image..][..image], &grad[number * image..][..image]);
        let pooled = &output[line * len..(line + 1) * len];
        // SAFETY: each line of the result belongs to one chunk.
        let out = unsafe { out.slice(line * len, len) };
        let mut window = Window::<T>::new(shape);
        for (i, (out, &pooled)) in out.iter_mut().zip(pooled).enumerate() {
            let (x, c) = (i / shape.channels, i % shape.channels);
            if c == 0 {
                window.move_to([z, y, x]);
            }
            let place = window.places.iter().find(|&&place| values[place + c] == pooled);
            *out = place.map_or(T::ZERO, |place| grad[place + c]);
        }
    });
}

/// Adds each gradient to the place in its image that `argmax` says; places outside of the image are passed over.
///
/// # Panics
/// If a slice does not have the size that `shape` says.
pub fn max_argmax_grad<T: Pooled>(
    pool: &Pool,
    shape: &PoolShape,
    grad: &[T],
    argmax: &[i64],
    include_batch: bool,
    out: &mut [T],
) {
    check(shape, out.len(), grad.len());
    check(shape, out.len(), argmax.len());
    let image = shape.image_len();
    let grads = shape.output.iter().product::<usize>() * shape.channels;
    let out = Span::new(out);
    shape.for_each(pool, if image == 0 { 0 } else { shape.batch }, |number| {
        // SAFETY: each image of the derivative belongs to one chunk.
        let out = unsafe { out.slice(number * image, image) };
        out.fill(T::ZERO);
        let first = if include_batch { number * image } else { 0 };
        let mine = number * grads..(number + 1) * grads;
        for (&grad, &place) in grad[mine.clone()].iter().zip(&argmax[mine]) {
            let place = usize::try_from(place).ok().and_then(|place| place.checked_sub(first));
            if let Some(out) = place.and_then(|place| out.get_mut(place)) {
                *out = out.plus(grad);
            }
        }
    });
}

/// Takes from `grad`, which has the input's size, the number at each place that `argmax` says; zero outside.
///
/// # Panics
/// If a slice does not have the size that `shape` says.
pub fn max_argmax_gather<T: Pooled>(shape: &PoolShape, grad: &[T], argmax: &[i64], include_batch: bool, out: &mut [T]) {
    check(shape, grad.len(), argmax.len());
    check(shape, grad.len(), out.len());
    let image = shape.image_len();
    let each = shape.output.iter().product::<usize>() * shape.channels;
    for (i, (out, &place)) in out.iter_mut().zip(argmax).enumerate() {
        let first = if include_batch { 0 } else { i / each * image };
        let place = usize::try_from(place).ok().and_then(|place| place.checked_add(first));
        *out = place.and_then(|place| grad.get(place)).copied().unwrap_or(T::ZERO);
    }
}

fn check(shape: &PoolShape, input: usize, output: usize) {
    assert_eq!(input, shape.input_len(), "images of a pooling have the wrong size");
    assert_eq!(output, shape.output_len(), "result of a pooling has the wrong size");
}

//! The derivative of a convolution by its filter.

use super::stencil::{Band, Stencil};
use super::{ConvShape, Float, check, forward_stencil, is_product};
use crate::Pool;
use crate::gemm::kernel::{Finish, ROWS, Tile};
use crate::gemm::{Epilogue, Matrix, Span, pack, scratch};
use std::ops::Range;

/// Points whose gradients are used at a time: their panel fills half of the first cache.
const DEPTH: usize = 256;

/// Filters above this size are split between threads by themselves, smaller ones by images.
const SMALL: usize = 1 << 17;

/// The derivative by the filter: `out` takes the filter's shape, `grad` has that of the result.
///
/// # Panics
/// If a slice does not have the size that `shape` says.
pub fn grad_filter<T: Float>(pool: &Pool, shape: &ConvShape, input: &[T], grad: &[T], out: &mut [T]) {
    check(shape, input.len(), out.len(), grad.len());
    if input.is_empty() || grad.is_empty() || out.is_empty() {
        return out.fill(T::ZERO);
    }
    if is_product(shape) {
        let lhs = Matrix::new(input, input.len() / shape.channels, shape.channels).transposed();
        let rhs = Matrix::new(grad, grad.len() / shape.out_channels, shape.out_channels);
        return T::product(pool, lhs, rhs, Epilogue::NONE, out);
    }
    out.fill(T::ZERO);
    let stencil = forward_stencil(shape);
    let rows = stencil.band_rows(pool.threads());
    let job = Job { shape, stencil: &stencil, rows, input, grad };
    let bands = stencil.bands(rows);
    let depth = stencil.depth();
    if out.len() > SMALL {
        let each = depth.div_ceil(4 * pool.threads()).next_multiple_of(ROWS);
        let span = Span::new(out);
        return pool.run(depth.div_ceil(each), &|chunk| {
            job.add(0..bands, chunk * each..((chunk + 1) * each).min(depth), span);
        });
    }
    let parts = bands.min(4 * pool.threads());
    let mut sums = vec![T::ZERO; (parts - 1) * out.len()];
    let (first, rest, len) = (Span::new(out), Span::new(&mut sums), out.len());
    pool.run(parts, &|part| {
        let mine = part * bands / parts..(part + 1) * bands / parts;
        job.add(mine, 0..depth, if part == 0 { first } else { rest.from((part - 1) * len) });
    });
    for part in sums.chunks_exact(len) {
        out.iter_mut().zip(part).for_each(|(sum, &x)| *sum = *sum + x);
    }
}

/// What all threads read.
struct Job<'a, T> {
    shape: &'a ConvShape,
    stencil: &'a Stencil,
    rows: usize,
    input: &'a [T],
    grad: &'a [T],
}

impl<T: Float> Job<'_, T> {
    /// Adds what some bands contribute to some rows of the filter.
    fn add(&self, bands: Range<usize>, factors: Range<usize>, out: Span<T>) {
        // Small bands are taken together, so that a sum is long enough to be worth its load and store.
        let points = self.rows * self.stencil.points[2];
        let together = (DEPTH / points).max(1);
        let window_len = self.stencil.window(self.rows);
        let grad_len = pack::rhs_len::<T>(self.shape.out_channels / self.shape.groups(), points * together);
        scratch::with::<T, _>(grad_len + window_len * together, |buffer| {
            let (packed, windows) = buffer.split_at_mut(grad_len);
            for start in bands.clone().step_by(together) {
                let mine = start..(start + together).min(bands.end);
                for group in 0..self.shape.groups() {
                    self.add_some(mine.clone(), group, factors.clone(), windows, packed, out);
                }
            }
        });
    }

    fn add_some(
        &self,
        bands: Range<usize>,
        group: usize,
        factors: Range<usize>,
        windows: &mut [T],
        packed: &mut [T],
        out: Span<T>,
    ) {
        let stencil = self.stencil;
        let first = self.first_point(&stencil.band(bands.start, self.rows));
        let window_len = stencil.window(self.rows);
        let mut starts = Vec::new();
        for (i, number) in bands.enumerate() {
            let band = stencil.band(number, self.rows);
            // The last band of an image may be lower; its window keeps the strides of a whole one.
            let window = &mut windows[i * window_len..(i + 1) * window_len];
            self.fill(&band, group, window);
            starts.extend((0..band.rows.len()).map(|y| i * window_len + y * stencil.stride[1] * stencil.row()));
        }
        let cols = self.shape.out_channels / self.shape.groups();
        let points = starts.len() * stencil.points[2];
        let grads = Matrix {
            values: &self.grad[first * self.shape.out_channels + group * cols..],
            rows: points,
            cols,
            row_stride: self.shape.out_channels,
            col_stride: 1,
        };
        // Narrow rows of gradients are read where they are, wide ones would collide in the cache.
        let direct = cols.is_multiple_of(T::PANEL) && self.shape.out_channels <= T::PANEL;
        if !direct {
            pack::rhs(&grads, 0..points, 0..cols, packed);
        }
        let part = Part {
            job: self,
            windows,
            starts: &starts,
            grads: if direct { grads.values } else { packed },
            step: if direct { grads.row_stride } else { T::PANEL },
            panel: if direct { T::PANEL } else { points * T::PANEL },
            cols,
        };
        part.multiply(factors, out.from(group * cols));
    }

    fn first_point(&self, band: &Band) -> usize {
        let points = self.stencil.points;
        ((band.image * points[0] + band.plane) * points[1] + band.rows.start) * points[2]
    }

    fn fill(&self, band: &Band, group: usize, window: &mut [T]) {
        let (low, whole) = (self.stencil.plane(band.rows.len()), self.stencil.plane(self.rows));
        if low == whole {
            return self.stencil.fill(band, group, self.input, window);
        }
        self.stencil.fill(band, group, self.input, &mut window[..self.stencil.taps[0].len() * low]);
        for plane in (1..self.stencil.taps[0].len()).rev() {
            window.copy_within(plane * low..(plane + 1) * low, plane * whole);
        }
    }
}

/// Windows and gradients of some bands, ready to multiply.
struct Part<'a, T> {
    job: &'a Job<'a, T>,
    windows: &'a [T],
    /// Where the rows of points begin.
    starts: &'a [usize],
    grads: &'a [T],
    step: usize,
    panel: usize,
    cols: usize,
}

impl<T: Float> Part<'_, T> {
    fn multiply(&self, factors: Range<usize>, out: Span<T>) {
        let stencil = self.job.stencil;
        let each = stencil.group_channels;
        let taps = stencil.tap_offsets(self.job.rows);
        let factors: Vec<(usize, usize)> = factors.map(|f| (f, taps[f / each] + f % each)).collect();
        let width = stencil.points[2];
        let strips = factors.len().div_ceil(ROWS);
        let height = factors.len().div_ceil(strips);
        let lines = (DEPTH / width).max(1);
        for (part, starts) in self.starts.chunks(lines).enumerate() {
            for (panel, col) in (0..self.cols).step_by(T::PANEL).enumerate() {
                let rhs = &self.grads[panel * self.panel + part * lines * width * self.step..];
                for strip in factors.chunks(height) {
                    self.tile(strip, starts, rhs, out, col);
                }
            }
        }
    }

    #[inline(always)]
    fn tile(&self, strip: &[(usize, usize)], starts: &[usize], rhs: &[T], out: Span<T>, col: usize) {
        let stencil = self.job.stencil;
        let out_stride = self.job.shape.out_channels;
        let last = strip.len() - 1;
        let tile = Tile {
            rows: std::array::from_fn(|r| self.windows[strip[r.min(last)].1..].as_ptr()),
            step: stencil.stride[2] * stencil.group_channels,
            segments: starts,
            run: stencil.points[2],
            rhs: rhs.as_ptr(),
            rhs_step: self.step,
            out: out.at(strip[0].0 * out_stride + col),
            out_stride,
            cols: T::PANEL.min(self.cols - col),
            accumulate: true,
            finish: Finish::NONE,
        };
        // SAFETY: windows hold every factor of every point, `rhs` the gradients of the same points; these
        // rows of the filter are written by this thread only.
        unsafe { T::kernels().run(strip.len(), &tile) };
    }
}

//! Sums over the neighbourhoods of points, as products without a matrix of neighbourhoods.
//!
//! A band of an image is copied once, with its zeros, into a buffer that stays in cache; there the factors of
//! a point lie in a few contiguous runs, and the micro-kernel walks them in place.

use crate::Pool;
use crate::gemm::kernel::{Finish, ROWS, Tile};
use crate::gemm::{Real, Span, scratch};
use std::ops::Range;

/// Numbers that a band with its zeros should not exceed: half of the second cache in f32.
const BAND: usize = 1 << 16;

/// Depth of the part of a panel that is used at a time.
const DEPTH: usize = 512;

/// Where the factors of each output point lie in an image.
pub(super) struct Stencil {
    /// Images.
    pub batch: usize,
    /// Depth, height and width of an image.
    pub input: [usize; 3],
    /// Channels of an image, and of a group.
    pub channels: usize,
    pub group_channels: usize,
    /// Offsets of the neighbours along each axis, ascending from 0.
    pub taps: [Vec<usize>; 3],
    /// The place in the image of the neighbour 0 of point 0.
    pub origin: [isize; 3],
    /// From one point to the next.
    pub stride: [usize; 3],
    /// How many points along each axis.
    pub points: [usize; 3],
}

/// Points that are computed together: some rows of one plane of one image.
#[derive(Clone)]
pub(super) struct Band {
    pub image: usize,
    pub plane: usize,
    pub rows: Range<usize>,
}

impl Stencil {
    pub fn groups(&self) -> usize {
        self.channels / self.group_channels
    }

    /// Factors of one point within one group.
    pub fn depth(&self) -> usize {
        self.taps.iter().map(Vec::len).product::<usize>() * self.group_channels
    }

    fn reach(&self, axis: usize) -> usize {
        self.taps[axis].last().map_or(0, |last| last + 1)
    }

    /// Numbers in a row of the buffer.
    pub fn row(&self) -> usize {
        ((self.points[2] - 1) * self.stride[2] + self.reach(2)) * self.group_channels
    }

    /// Numbers in a plane of the buffer that serves `rows` rows of points.
    pub fn plane(&self, rows: usize) -> usize {
        ((rows - 1) * self.stride[1] + self.reach(1)) * self.row()
    }

    /// Numbers in the buffer that serves `rows` rows of points.
    pub fn window(&self, rows: usize) -> usize {
        self.taps[0].len() * self.plane(rows)
    }

    /// How many rows a band has: few enough to stay in cache and to give every thread several bands.
    pub fn band_rows(&self, threads: usize) -> usize {
        let planes = (self.batch * self.points[0]).max(1);
        let wanted = if threads == 1 { 1 } else { (4 * threads).div_ceil(planes) };
        let mut rows = self.points[1].div_ceil(wanted).max(1);
        while rows > 1 && (self.window(rows) > BAND || rows * self.points[2] > 4096) {
            rows = rows.div_ceil(2);
        }
        rows
    }

    /// All points, as bands of at most `rows` rows, in the order of the result.
    pub fn bands(&self, rows: usize) -> usize {
        self.batch * self.points[0] * self.points[1].div_ceil(rows)
    }

    /// The band of this number.
    pub fn band(&self, number: usize, rows: usize) -> Band {
        let each = self.points[1].div_ceil(rows);
        let (plane, start) = (number / each, number % each * rows);
        let rows = start..(start + rows).min(self.points[1]);
        Band { image: plane / self.points[0], plane: plane % self.points[0], rows }
    }

    /// Copies the part of the image that a band sees, one group of channels, zeros where there is no image.
    pub fn fill<T: Real>(&self, band: &Band, group: usize, input: &[T], window: &mut [T]) {
        let [depth, height, width] = self.input;
        let rows = band.rows.len();
        let row_len = self.row();
        for (tap, planes) in self.taps[0].iter().zip(window.chunks_exact_mut(self.plane(rows))) {
            let z = self.origin[0] + (band.plane * self.stride[0] + tap) as isize;
            let y = self.origin[1] + (band.rows.start * self.stride[1]) as isize;
            for (y, dst) in (y..).zip(planes.chunks_exact_mut(row_len)) {
                if z < 0 || z >= depth as isize || y < 0 || y >= height as isize {
                    dst.fill(T::ZERO);
                    continue;
                }
                let start = ((band.image * depth + z as usize) * height + y as usize) * width;
                let src = &input[start * self.channels..(start + width) * self.channels];
                self.fill_row(group, src, dst);
            }
        }
    }

    fn fill_row<T: Real>(&self, group: usize, src: &[T], dst: &mut [T]) {
        let each = self.group_channels;
        let width = src.len() / self.channels;
        let points = dst.len() / each;
        let before = (-self.origin[2]).clamp(0, points as isize) as usize;
        let first = self.origin[2].clamp(0, width as isize) as usize;
        let count = (points - before).min(width - first);
        let (zeros, rest) = dst.split_at_mut(before * each);
        let (middle, after) = rest.split_at_mut(count * each);
        zeros.fill(T::ZERO);
        after.fill(T::ZERO);
        if each == self.channels {
            middle.copy_from_slice(&src[first * each..(first + count) * each]);
            return;
        }
        let points = src[first * self.channels..].chunks_exact(self.channels);
        for (dst, src) in middle.chunks_exact_mut(each).zip(points) {
            dst.copy_from_slice(&src[group * each..(group + 1) * each]);
        }
    }

    /// Where the points of a band begin in its buffer.
    pub fn point_offsets(&self, rows: usize) -> Vec<usize> {
        let (row, step) = (self.stride[1] * self.row(), self.stride[2] * self.group_channels);
        (0..rows).flat_map(|y| (0..self.points[2]).map(move |x| y * row + x * step)).collect()
    }

    /// Where the runs of factors begin relative to a point, and how long each is.
    fn runs(&self, rows: usize) -> (Vec<usize>, usize) {
        let width = &self.taps[2];
        let joined = width.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let run = if joined { width.len() * self.group_channels } else { self.group_channels };
        let starts = if joined { &width[..1] } else { &width[..] };
        (self.offsets(rows, starts), run)
    }

    /// Where each neighbour lies relative to a point, in the order of the filter.
    pub fn tap_offsets(&self, rows: usize) -> Vec<usize> {
        self.offsets(rows, &self.taps[2])
    }

    fn offsets(&self, rows: usize, width: &[usize]) -> Vec<usize> {
        let (plane, row, each) = (self.plane(rows), self.row(), self.group_channels);
        let mut offsets = Vec::with_capacity(self.taps[0].len() * self.taps[1].len() * width.len());
        for z in 0..self.taps[0].len() {
            for y in &self.taps[1] {
                offsets.extend(width.iter().map(|x| z * plane + y * row + x * each));
            }
        }
        offsets
    }
}

/// Packed filters: for each group `depth` rows of `cols` columns.
pub(super) struct Filters<'a, T> {
    /// Panels, or whole columns where `narrow`.
    pub packed: &'a [T],
    /// Columns of a group.
    pub cols: usize,
    /// Whether the columns lie contiguous, one after the other, instead of in panels.
    pub narrow: bool,
}

/// Whether so few columns are better multiplied along the depth.
pub(super) fn is_narrow(stencil: &Stencil, cols: usize) -> bool {
    cols <= 2 && stencil.taps[2].len() * stencil.group_channels >= 32
}

/// `out[point, group * cols + c] = finish(Σ factor * filter)`, for all points of all images, points in order.
pub(super) fn correlate<T: Real>(
    pool: &Pool,
    stencil: &Stencil,
    input: &[T],
    filters: &Filters<'_, T>,
    finish: Finish<T>,
    out: Span<T>,
) {
    // Small images are dealt out by columns rather than by rows: a panel of the filter then serves more points.
    let few = stencil.points[1] * stencil.points[2] < 256;
    let rows = stencil.band_rows(if few { 1 } else { pool.threads() });
    let bands = stencil.bands(rows);
    let panels = filters.cols.div_ceil(T::PANEL);
    let parts =
        if filters.narrow || pool.threads() == 1 { 1 } else { (4 * pool.threads()).div_ceil(bands).min(panels) };
    pool.run(bands * parts, &|number| {
        let band = stencil.band(number % bands, rows);
        let part = number / bands;
        let panels = part * panels / parts..(part + 1) * panels / parts;
        let first =
            ((band.image * stencil.points[0] + band.plane) * stencil.points[1] + band.rows.start) * stencil.points[2];
        scratch::with::<T, _>(stencil.window(band.rows.len()), |window| {
            let points = stencil.point_offsets(band.rows.len());
            let (runs, run) = stencil.runs(band.rows.len());
            let out_stride = stencil.groups() * filters.cols;
            for group in 0..stencil.groups() {
                stencil.fill(&band, group, input, window);
                let len = filters.packed.len() / stencil.groups();
                let view = View {
                    window,
                    points: &points,
                    runs: &runs,
                    run,
                    filter: &filters.packed[group * len..(group + 1) * len],
                    cols: filters.cols,
                    finish: finish.after_cols(group * filters.cols),
                    out: out.from(first * out_stride + group * filters.cols),
                    out_stride,
                };
                if filters.narrow { view.multiply_narrow() } else { view.multiply(panels.clone()) }
            }
        });
    });
}

/// One group of one band, ready to multiply.
struct View<'a, T> {
    window: &'a [T],
    points: &'a [usize],
    runs: &'a [usize],
    run: usize,
    filter: &'a [T],
    cols: usize,
    finish: Finish<T>,
    out: Span<T>,
    out_stride: usize,
}

impl<T: Real> View<'_, T> {
    fn tile(&self, point: usize, count: usize) -> Tile<'_, T> {
        Tile {
            rows: std::array::from_fn(|r| self.window[self.points[point + r.min(count - 1)]..].as_ptr()),
            step: 1,
            segments: self.runs,
            run: self.run,
            rhs: self.filter.as_ptr(),
            rhs_step: T::PANEL,
            out: self.out.at(point * self.out_stride),
            out_stride: self.out_stride,
            cols: self.cols,
            accumulate: false,
            finish: self.finish,
        }
    }

    /// Panel by panel, a part of the depth at a time, so that the panel stays in the first cache.
    fn multiply(&self, panels: Range<usize>) {
        let kernels = T::kernels();
        let panel_len = self.runs.len() * self.run * T::PANEL;
        let together = (DEPTH / self.run.max(1)).max(1);
        for (part, runs) in self.runs.chunks(together).enumerate() {
            let last = (part + 1) * together >= self.runs.len();
            for panel in panels.clone() {
                let col = panel * T::PANEL;
                let rhs = &self.filter[panel * panel_len + part * together * self.run * T::PANEL..];
                for point in (0..self.points.len()).step_by(ROWS) {
                    let count = ROWS.min(self.points.len() - point);
                    let tile = Tile {
                        segments: runs,
                        rhs: rhs.as_ptr(),
                        out: self.out.at(point * self.out_stride + col),
                        cols: T::PANEL.min(self.cols - col),
                        accumulate: part > 0,
                        finish: if last { self.finish.after_cols(col) } else { Finish::NONE },
                        ..self.tile(point, count)
                    };
                    // SAFETY: the window holds all runs of its points, the filter all its panels; these
                    // points of the result are written by this band only.
                    unsafe { kernels.run(count, &tile) };
                }
            }
        }
    }

    /// Column by column, along the depth.
    fn multiply_narrow(&self) {
        let depth = self.runs.len() * self.run;
        for point in (0..self.points.len()).step_by(ROWS) {
            for col in 0..self.cols {
                let count = ROWS.min(self.points.len() - point);
                let tile = Tile {
                    rhs: self.filter[col * depth..(col + 1) * depth].as_ptr(),
                    out: self.out.at(point * self.out_stride + col),
                    finish: self.finish.after_cols(col),
                    ..self.tile(point, count)
                };
                // SAFETY: as `multiply`; a column of the filter is as long as all runs together.
                unsafe { (T::kernels().dot)(&tile, count) };
            }
        }
    }
}

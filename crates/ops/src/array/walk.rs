//! Copies between strided regions, for slices, pads, tiles, reversals and splits.

use super::units::Unit;
use math::Pool;
use math::parallel::split_rows_mut;
use smallvec::SmallVec;
use status::Result;
use tensor::Tensor;

/// One axis of a walk: its length, and the strides on either side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    /// The number of steps on this axis.
    pub len: usize,
    /// The stride in the source; may be negative or zero.
    pub src: isize,
    /// The stride in the destination.
    pub dst: usize,
}

/// A region of a source and of a destination with the same dimensions.
///
/// Axes of length one are dropped and neighbours that are one run on both sides are joined, so an empty list is one
/// element.
#[derive(Debug, PartialEq)]
pub(crate) struct Walk {
    src_start: usize,
    dst_start: usize,
    axes: SmallVec<[Axis; 6]>,
}

impl Walk {
    /// A walk over these axes, outermost first, that starts at these elements.
    pub fn new(src_start: usize, dst_start: usize, axes: impl IntoIterator<Item = Axis>) -> Walk {
        let mut joined: SmallVec<[Axis; 6]> = SmallVec::new();
        for axis in axes.into_iter().filter(|axis| axis.len != 1) {
            match joined.last_mut() {
                Some(outer) if outer.src == axis.src * axis.len as isize && outer.dst == axis.dst * axis.len => {
                    *outer = Axis { len: outer.len * axis.len, ..axis };
                }
                _ => joined.push(axis),
            }
        }
        Walk { src_start, dst_start, axes: joined }
    }

    /// Copies the region from `src` to `dst`; both have the same element type.
    pub fn copy(&self, pool: &Pool, src: &Tensor, dst: &mut Tensor) -> Result<()> {
        for_units!(dst.dtype(), E => self.copy_units(pool, E::of(src)?, E::of_mut(dst)?));
        Ok(())
    }

    /// Copies the region between slices.
    pub fn copy_units<T: Clone + Send + Sync>(&self, pool: &Pool, src: &[T], dst: &mut [T]) {
        if self.axes.iter().any(|axis| axis.len == 0) {
            return;
        }
        let Some((outer, inner)) = self.axes.split_first() else {
            dst[self.dst_start] = src[self.src_start].clone();
            return;
        };
        let extent: usize = 1 + inner.iter().map(|axis| (axis.len - 1) * axis.dst).sum::<usize>();
        if outer.dst < extent {
            return walk(&self.axes, src, self.src_start, &mut dst[self.dst_start..]);
        }
        let end = self.dst_start + (outer.len - 1) * outer.dst + extent;
        let dst = &mut dst[self.dst_start..end];
        split_rows_mut(pool, self.row_cost::<T>(), dst, outer.dst, |row, chunk| {
            let rows = chunk.len().div_ceil(outer.dst);
            let mut axes = self.axes.clone();
            axes[0].len = rows;
            walk(&axes, src, moved(self.src_start, row, outer.src), chunk);
        });
    }

    /// Nanoseconds for one step on the outermost axis.
    fn row_cost<T>(&self) -> f32 {
        let count: usize = self.axes[1..].iter().map(|axis| axis.len).product();
        let runs = self.axes.last().is_none_or(|axis| axis.dst == 1 && (axis.src == 1 || axis.src == 0));
        let each = if runs { 0.1 * size_of::<T>() as f32 } else { 0.6 };
        count as f32 * each
    }
}

/// The place `steps` steps from `start`; callers only walk inside their slices.
fn moved(start: usize, steps: usize, by: isize) -> usize {
    start.wrapping_add_signed(by.wrapping_mul(steps as isize))
}

/// Copies a region; `dst` begins with its first element.
fn walk<T: Clone>(axes: &[Axis], src: &[T], from: usize, dst: &mut [T]) {
    match axes {
        [] => dst[0] = src[from].clone(),
        [axis] => line(*axis, src, from, dst),
        [outer, inner] => {
            for step in 0..outer.len {
                line(*inner, src, moved(from, step, outer.src), &mut dst[step * outer.dst..]);
            }
        }
        [outer, inner @ ..] => {
            for step in 0..outer.len {
                walk(inner, src, moved(from, step, outer.src), &mut dst[step * outer.dst..]);
            }
        }
    }
}

/// Copies the innermost axis.
#[inline]
fn line<T: Clone>(axis: Axis, src: &[T], from: usize, dst: &mut [T]) {
    let Axis { len, src: step, dst: dst_step } = axis;
    match (step, dst_step) {
        (1, 1) => run(&src[from..from + len], &mut dst[..len]),
        (0, 1) => dst[..len].fill(src[from].clone()),
        (1.., _) => assign(src[from..].iter().step_by(step as usize), dst, axis),
        (0, _) => assign(std::iter::repeat(&src[from]), dst, axis),
        _ => assign(src[..=from].iter().rev().step_by(step.unsigned_abs()), dst, axis),
    }
}

/// A short run element by element: a call of `memcpy` takes longer than its work.
#[inline]
fn run<T: Clone>(src: &[T], dst: &mut [T]) {
    if src.len() <= 4 {
        for (dst, src) in dst.iter_mut().zip(src) {
            *dst = src.clone();
        }
    } else {
        dst.clone_from_slice(src);
    }
}

#[inline]
fn assign<'a, T: Clone + 'a>(src: impl Iterator<Item = &'a T>, dst: &mut [T], axis: Axis) {
    if axis.dst == 1 {
        for (dst, src) in dst[..axis.len].iter_mut().zip(src) {
            *dst = src.clone();
        }
    } else {
        for (dst, src) in dst.iter_mut().step_by(axis.dst).take(axis.len).zip(src) {
            *dst = src.clone();
        }
    }
}

/// The axes of a region of `dims` elements inside a source and a destination with these row-major strides.
pub(crate) fn axes<'a>(dims: &'a [usize], src: &'a [usize], dst: &'a [usize]) -> impl Iterator<Item = Axis> + 'a {
    dims.iter().zip(src).zip(dst).map(|((&len, &src), &dst)| Axis { len, src: src as isize, dst })
}

//! Copies that compose each axis of a few runs, forwards or backwards: rolls and mirrored borders.

use super::walk::{Axis, Walk};
use math::Pool;
use smallvec::SmallVec;
use status::Result;
use tensor::Tensor;

/// A run of indices of one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Segment {
    /// The first index in the source.
    pub src: usize,
    /// Whether the source is read backwards.
    pub back: bool,
    /// The first index in the destination.
    pub dst: usize,
    /// The number of indices.
    pub len: usize,
}

/// Copies every combination of the axes' segments. Empty segments are skipped, so there are never more combinations
/// than elements.
pub(super) fn copy_segments(pool: &Pool, axes: &[Vec<Segment>], src: &Tensor, dst: &mut Tensor) -> Result<()> {
    let axes: Vec<Vec<Segment>> =
        axes.iter().map(|axis| axis.iter().copied().filter(|segment| segment.len > 0).collect()).collect();
    if axes.iter().any(Vec::is_empty) {
        return Ok(());
    }
    let (src_strides, dst_strides) = (src.shape().strides(), dst.shape().strides());
    let mut picks: SmallVec<[usize; 6]> = SmallVec::from_elem(0, axes.len());
    loop {
        let picked = || axes.iter().zip(&picks).map(|(axis, &pick)| axis[pick]);
        let src_start = picked().zip(&src_strides).map(|(segment, stride)| segment.src * stride).sum();
        let dst_start = picked().zip(&dst_strides).map(|(segment, stride)| segment.dst * stride).sum();
        let walked = picked().zip(src_strides.iter().zip(&dst_strides)).map(|(segment, (&src, &dst))| {
            let src = if segment.back { -(src as isize) } else { src as isize };
            Axis { len: segment.len, src, dst }
        });
        Walk::new(src_start, dst_start, walked.collect::<SmallVec<[Axis; 6]>>()).copy(pool, src, dst)?;
        if !advance(&mut picks, &axes) {
            return Ok(());
        }
    }
}

/// The next combination; false after the last.
fn advance(picks: &mut [usize], axes: &[Vec<Segment>]) -> bool {
    for (pick, axis) in picks.iter_mut().zip(axes).rev() {
        *pick += 1;
        if *pick < axis.len() {
            return true;
        }
        *pick = 0;
    }
    false
}

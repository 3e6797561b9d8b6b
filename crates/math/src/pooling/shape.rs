//! The sizes of a pooling, and which inputs each output sees.

use crate::Pool;
use crate::conv::Axis;
use crate::parallel::split;
use std::ops::Range;

/// The sizes of a pooling over images or volumes, channels last; an image is a volume of depth one.
///
/// All products of sizes fit `usize`, since only `PoolShape::new` makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolShape {
    /// How many images.
    pub batch: usize,
    /// How depth, height and width are walked.
    pub axes: [Axis; 3],
    /// Channels, which are pooled each by itself.
    pub channels: usize,
    /// Depth, height and width of the result.
    pub output: [usize; 3],
}

impl PoolShape {
    /// A pooling over images, from the axes of height and width; `None` if the sizes are inconsistent or overflow.
    pub fn image(batch: usize, axes: [Axis; 2], channels: usize) -> Option<PoolShape> {
        PoolShape::new(batch, [Axis::valid(1, 1, 1, 1), axes[0], axes[1]], channels)
    }

    /// A pooling over volumes; none if a size overflows, would be negative, or a window has gaps.
    pub fn new(batch: usize, axes: [Axis; 3], channels: usize) -> Option<PoolShape> {
        let output = [axes[0].output()?, axes[1].output()?, axes[2].output()?];
        let fits = |sizes: [usize; 3]| {
            let sizes = [batch, channels, sizes[0], sizes[1], sizes[2]];
            let count = sizes.iter().try_fold(1usize, |count, &size| count.checked_mul(size.max(1)));
            count.is_some_and(|count| count <= isize::MAX as usize / 64)
        };
        let fit = fits(axes.map(|axis| axis.input)) && fits(output) && fits(axes.map(|axis| axis.filter));
        (fit && axes.iter().all(|axis| axis.dilation == 1)).then_some(PoolShape { batch, axes, channels, output })
    }

    /// Numbers in all images.
    pub fn input_len(&self) -> usize {
        self.batch * self.image_len()
    }

    /// Numbers in the result.
    pub fn output_len(&self) -> usize {
        self.batch * self.output.iter().product::<usize>() * self.channels
    }

    /// Numbers in one image.
    pub(super) fn image_len(&self) -> usize {
        self.axes.iter().map(|axis| axis.input).product::<usize>() * self.channels
    }

    /// Lines of the result.
    pub(super) fn lines(&self) -> usize {
        self.batch * self.output[0] * self.output[1]
    }

    /// Calls `body` for each of `lines` equal parts of the work, on several threads if that is worth it.
    pub(super) fn for_each(&self, pool: &Pool, lines: usize, body: impl Fn(usize) + Sync) {
        let window: usize = self.axes.iter().map(|axis| axis.filter).product();
        let work = self.output_len() as f32 * window as f32;
        split(pool, lines, work / lines.max(1) as f32 * 0.2, 1, |range| range.for_each(&body));
    }

    /// Image, plane and row of a line of the result.
    pub(super) fn line(&self, line: usize) -> (usize, usize, usize) {
        let (plane, y) = (line / self.output[1], line % self.output[1]);
        (plane / self.output[0], plane % self.output[0], y)
    }

    /// Which inputs along an axis the output `at` sees.
    #[inline(always)]
    pub(super) fn seen(&self, axis: usize, at: usize) -> Range<usize> {
        let axis = &self.axes[axis];
        let start = at * axis.stride;
        let end = (start + axis.filter).saturating_sub(axis.pad.0).min(axis.input);
        start.saturating_sub(axis.pad.0).min(end)..end
    }

    /// Which outputs along an axis see the input `at`.
    #[inline(always)]
    pub(super) fn seeing(&self, axis: usize, at: usize) -> Range<usize> {
        let (outputs, axis) = (self.output[axis], &self.axes[axis]);
        let place = at + axis.pad.0;
        let start = (place + 1).saturating_sub(axis.filter).div_ceil(axis.stride);
        let end = (place / axis.stride + 1).min(outputs);
        start.min(end)..end
    }

    /// Where the channels of an input point begin within its image.
    #[inline(always)]
    pub(super) fn input_at(&self, z: usize, y: usize, x: usize) -> usize {
        ((z * self.axes[1].input + y) * self.axes[2].input + x) * self.channels
    }
}

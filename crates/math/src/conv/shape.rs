//! The sizes of a convolution, and all arithmetic about them.

/// The sizes of a convolution over images or volumes, channels last.
///
/// An image is a volume of depth one. All products of sizes fit `usize`, and the output size follows from
/// the others, since only `ConvShape::new` makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvShape {
    /// How many images.
    pub batch: usize,
    /// Depth, height and width of an image.
    pub input: [usize; 3],
    /// Channels of an image.
    pub channels: usize,
    /// Depth, height and width of the filter.
    pub filter: [usize; 3],
    /// Channels that one filter sees; a divisor of `channels`, and fewer when there are groups.
    pub filter_channels: usize,
    /// How many filters.
    pub out_channels: usize,
    /// Distance between the filter positions of two neighbouring outputs.
    pub stride: [usize; 3],
    /// Distance in the image between two neighbouring filter elements.
    pub dilation: [usize; 3],
    /// Zeros before the image.
    pub pad_before: [usize; 3],
    /// Zeros after the image.
    pub pad_after: [usize; 3],
    /// Depth, height and width of the result.
    pub output: [usize; 3],
}

/// Numbers of an image that a filter may span, however small the images are.
const LARGE_REACH: usize = 1 << 24;

/// One axis of a convolution or pooling window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Size of the image along this axis.
    pub input: usize,
    /// Size of the window.
    pub filter: usize,
    /// Distance between two window positions.
    pub stride: usize,
    /// Distance in the image between two neighbouring window elements.
    pub dilation: usize,
    /// Zeros before and after the image.
    pub pad: (usize, usize),
}

impl Axis {
    /// The zeros of TensorFlow's SAME padding, the odd one after; none if the sizes overflow or the stride is 0.
    pub fn same(input: usize, filter: usize, stride: usize, dilation: usize) -> Option<Axis> {
        let reach = reach(filter, dilation)?;
        let outputs = input.div_ceil((stride > 0).then_some(stride)?);
        let needed = outputs.checked_mul(stride)?.checked_add(reach)?.saturating_sub(stride.checked_add(input)?);
        Some(Axis { input, filter, stride, dilation, pad: (needed / 2, needed - needed / 2) })
    }

    /// No zeros at all.
    pub fn valid(input: usize, filter: usize, stride: usize, dilation: usize) -> Axis {
        Axis { input, filter, stride, dilation, pad: (0, 0) }
    }

    /// The number of outputs; `None` if it would be negative or the sizes overflow.
    pub fn output(&self) -> Option<usize> {
        if self.stride == 0 || self.dilation == 0 || self.filter == 0 {
            return None;
        }
        let padded = self.input.checked_add(self.pad.0)?.checked_add(self.pad.1)?;
        let room = padded.checked_add(self.stride)?;
        let reach = reach(self.filter, self.dilation)?;
        match room.checked_sub(reach) {
            Some(room) => Some(room / self.stride),
            // TensorFlow divides towards zero: a little too small an image has no outputs, not an error.
            None => (reach - room < self.stride).then_some(0),
        }
    }
}

/// The extent of a filter in the image.
fn reach(filter: usize, dilation: usize) -> Option<usize> {
    filter.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)
}

impl ConvShape {
    /// A convolution over images, from the axes of height and width; `None` if the sizes are inconsistent or
    /// overflow.
    pub fn image(
        batch: usize,
        axes: [Axis; 2],
        channels: usize,
        filter_channels: usize,
        out_channels: usize,
    ) -> Option<ConvShape> {
        ConvShape::new(batch, [Axis::valid(1, 1, 1, 1), axes[0], axes[1]], channels, filter_channels, out_channels)
    }

    /// A convolution over volumes; none if the channels do not divide into groups or a size overflows.
    pub fn new(
        batch: usize,
        axes: [Axis; 3],
        channels: usize,
        filter_channels: usize,
        out_channels: usize,
    ) -> Option<ConvShape> {
        let output = [axes[0].output()?, axes[1].output()?, axes[2].output()?];
        if filter_channels == 0 || !channels.is_multiple_of(filter_channels) {
            return None;
        }
        let groups = channels / filter_channels;
        if groups == 0 || !out_channels.is_multiple_of(groups) {
            return None;
        }
        let shape = ConvShape {
            batch,
            input: axes.map(|a| a.input),
            channels,
            filter: axes.map(|a| a.filter),
            filter_channels,
            out_channels,
            stride: axes.map(|a| a.stride),
            dilation: axes.map(|a| a.dilation),
            pad_before: axes.map(|a| a.pad.0),
            pad_after: axes.map(|a| a.pad.1),
            output,
        };
        shape.countable().then_some(shape)
    }

    /// True if the element counts of all arrays, and of a padded image, fit `usize` with a margin.
    fn countable(&self) -> bool {
        let fits = |sizes: &[usize]| {
            let count = sizes.iter().try_fold(1usize, |count, &size| count.checked_mul(size.max(1)));
            count.is_some_and(|count| count <= isize::MAX as usize / 64)
        };
        let padded: [usize; 3] = std::array::from_fn(|i| self.input[i] + self.pad_before[i] + self.pad_after[i]);
        let reach: [usize; 3] = std::array::from_fn(|i| (self.filter[i] - 1) * self.dilation[i] + 1);
        let with = |sizes: [usize; 3], more: [usize; 2]| fits(&[sizes[0], sizes[1], sizes[2], more[0], more[1]]);
        with(padded, [self.batch, self.channels])
            && with(reach, [self.channels, 1])
            && with(self.filter, [self.filter_channels, self.out_channels])
            && with(self.output, [self.batch, self.out_channels])
            && self.is_compact(reach)
    }

    /// True if the neighbourhood of a point, which is copied with its zeros, is not out of proportion to an image.
    fn is_compact(&self, reach: [usize; 3]) -> bool {
        let count = |sizes: [usize; 3]| sizes.iter().fold(self.channels, |count, &size| count.saturating_mul(size));
        count(reach) <= count(self.input).saturating_mul(64).max(LARGE_REACH)
    }

    /// Into how many groups the channels fall.
    pub fn groups(&self) -> usize {
        self.channels / self.filter_channels
    }

    /// Numbers in all images.
    pub fn input_len(&self) -> usize {
        self.batch * self.input.iter().product::<usize>() * self.channels
    }

    /// Numbers in all filters.
    pub fn filter_len(&self) -> usize {
        self.taps() * self.filter_channels * self.out_channels
    }

    /// Numbers in the result.
    pub fn output_len(&self) -> usize {
        self.batch * self.output.iter().product::<usize>() * self.out_channels
    }

    /// Positions in the filter.
    pub fn taps(&self) -> usize {
        self.filter.iter().product()
    }
}

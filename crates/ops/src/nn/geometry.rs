//! The geometry of windows that move over images: data format, strides, dilations, padding.

use graph::AttrValue;
use math::conv::Axis;
use math::{Permutation, transpose};
use op::{Ctx, Setup, ShapeQuery};
use status::{Result, internal, invalid, unimplemented_op};
use tensor::{Element, Shape, Tensor};

/// A source of attributes: a node whose kernel is built, or one whose shape is inferred.
pub(crate) trait Attrs {
    /// The value of an attribute, or its default.
    fn value(&self, name: &str) -> Result<&AttrValue>;

    /// A list of integers.
    fn integers(&self, name: &str) -> Result<Vec<i64>> {
        match self.value(name)? {
            AttrValue::List(list) => Ok(list.ints.clone()),
            _ => Err(internal!("attr '{name}' is not of type 'list(int)'")),
        }
    }

    /// A text; empty if there is none.
    fn text(&self, name: &str) -> String {
        match self.value(name) {
            Ok(AttrValue::String(text)) => String::from_utf8_lossy(text).into_owned(),
            _ => String::new(),
        }
    }
}

impl Attrs for Setup<'_> {
    fn value(&self, name: &str) -> Result<&AttrValue> {
        self.attr(name)
    }
}

impl Attrs for ShapeQuery<'_> {
    fn value(&self, name: &str) -> Result<&AttrValue> {
        self.attr(name)
    }
}

/// The position of the channels, and the number of axes along which a window moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// True if the channels precede the axes of the image.
    pub channels_first: bool,
    /// Two for images, three for volumes.
    pub spatial: usize,
}

/// The sizes of a batch of images; an image is a volume of depth one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Images {
    /// The number of images.
    pub batch: usize,
    /// Depth, height, width.
    pub size: [usize; 3],
    /// The number of channels.
    pub channels: usize,
}

impl Layout {
    /// Reads the attribute `data_format`; without it, channels are last.
    pub fn of(attrs: &dyn Attrs, spatial: usize) -> Result<Layout> {
        let channels_first = match attrs.text("data_format").as_str() {
            "" | "NHWC" | "NDHWC" => false,
            "NCHW" | "NCDHW" => true,
            _ => return Err(invalid!("Invalid data format")),
        };
        Ok(Layout { channels_first, spatial })
    }

    /// The axis of channels.
    pub fn channel_axis(&self) -> usize {
        if self.channels_first { 1 } else { self.spatial + 1 }
    }

    /// The first axis of the image.
    pub fn first_axis(&self) -> usize {
        if self.channels_first { 2 } else { 1 }
    }

    /// The entries for the axes of the image, out of one for every axis.
    pub fn spatial_of<T: Copy>(&self, all: &[T], depth: T) -> [T; 3] {
        let inner = &all[self.first_axis()..self.first_axis() + self.spatial];
        std::array::from_fn(|axis| (axis + self.spatial).checked_sub(3).map_or(depth, |axis| inner[axis]))
    }

    /// Interprets dimensions in this layout; there are as many as the layout has axes.
    pub fn images(&self, dims: &[usize]) -> Images {
        Images { batch: dims[0], size: self.spatial_of(dims, 1), channels: dims[self.channel_axis()] }
    }

    /// The dimensions of a batch of images.
    pub fn shape(&self, images: Images) -> Shape {
        let mut dims = vec![images.batch];
        dims.extend(&images.size[3 - self.spatial..]);
        dims.insert(self.channel_axis(), images.channels);
        Shape::from(dims)
    }

    /// The tensor with channels last; itself if they already are.
    pub fn to_channels_last<T: Element>(&self, ctx: &Ctx<'_>, tensor: Tensor) -> Result<Tensor> {
        if !self.channels_first {
            return Ok(tensor);
        }
        let images = self.images(tensor.shape());
        let points = images.size.iter().product();
        let last = Layout { channels_first: false, ..*self };
        let mut out = Tensor::scratch_of(tensor.dtype(), last.shape(images))?;
        let permutation = Permutation::new(&[images.batch, images.channels, points], &[0, 2, 1]);
        transpose(ctx.pool(), &permutation, tensor.values::<T>()?, out.values_mut()?);
        Ok(out)
    }

    /// The reverse of `to_channels_last`.
    pub fn from_channels_last<T: Element>(&self, ctx: &Ctx<'_>, tensor: Tensor) -> Result<Tensor> {
        if !self.channels_first {
            return Ok(tensor);
        }
        let images = Layout { channels_first: false, ..*self }.images(tensor.shape());
        let points = images.size.iter().product();
        let mut out = Tensor::scratch_of(tensor.dtype(), self.shape(images))?;
        let permutation = Permutation::new(&[images.batch, points, images.channels], &[0, 2, 1]);
        transpose(ctx.pool(), &permutation, tensor.values::<T>()?, out.values_mut()?);
        Ok(out)
    }
}

/// The padding around an image.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Padding {
    /// Padding such that the output size is the input size divided by the stride, rounded up.
    Same,
    /// No padding.
    Valid,
    /// These numbers of elements before and after each axis.
    Explicit([(usize, usize); 3]),
}

impl Padding {
    /// Reads the attributes `padding` and `explicit_paddings`.
    pub fn of(attrs: &dyn Attrs, layout: Layout) -> Result<Padding> {
        let explicit = attrs.integers("explicit_paddings").unwrap_or_default();
        match attrs.text("padding").as_str() {
            "EXPLICIT" => Padding::explicit(&explicit, layout),
            _ if !explicit.is_empty() => {
                Err(invalid!("explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT"))
            }
            "SAME" => Ok(Padding::Same),
            _ => Ok(Padding::Valid),
        }
    }

    /// Reads the sizes before and after every axis.
    pub fn explicit(sizes: &[i64], layout: Layout) -> Result<Padding> {
        let count = 2 * (layout.spatial + 2);
        if sizes.len() != count {
            return Err(invalid!("explicit_paddings attribute must contain {count} values, but got: {}", sizes.len()));
        }
        if sizes.iter().any(|&size| size < 0) {
            return Err(invalid!("All elements of explicit_paddings must be nonnegative"));
        }
        let pairs: Vec<(usize, usize)> =
            sizes.chunks_exact(2).map(|pair| (pair[0] as usize, pair[1] as usize)).collect();
        if pairs[0] != (0, 0) || pairs[layout.channel_axis()] != (0, 0) {
            return Err(invalid!("Nonzero explicit padding in the batch or depth dimensions is not supported"));
        }
        Ok(Padding::Explicit(layout.spatial_of(&pairs, (0, 0))))
    }
}

/// How a window moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    /// The order of the axes.
    pub layout: Layout,
    /// The distance from one output to the next.
    pub strides: [usize; 3],
    /// The distance from one neighbour in the window to the next.
    pub dilations: [usize; 3],
    /// The padding around the image.
    pub padding: Padding,
}

impl Geometry {
    /// Reads the attributes of a convolution over `spatial` axes.
    pub fn of_conv(attrs: &dyn Attrs, spatial: usize) -> Result<Geometry> {
        let layout = Layout::of(attrs, spatial)?;
        let rank = spatial + 2;
        let (strides, dilations) = (attrs.integers("strides")?, attrs.integers("dilations")?);
        if dilations.len() != rank {
            return Err(invalid!(
                "Conv{spatial}D requires the dilation attribute to contain {rank} values, but got: {}",
                dilations.len()
            ));
        }
        if strides.len() != rank {
            return Err(invalid!(
                "Conv{spatial}D on data format {} requires the stride attribute to contain {rank} values, but got: {}",
                attrs.text("data_format"),
                strides.len()
            ));
        }
        let outer = |values: &[i64]| values[0] == 1 && values[layout.channel_axis()] == 1;
        if !outer(&strides) {
            return Err(unimplemented_op!(
                "Current implementation does not yet support strides in the batch and depth dimensions."
            ));
        }
        let strides = layout.spatial_of(&strides, 1);
        if let Some(stride) = strides.iter().find(|&&stride| stride <= 0) {
            return Err(invalid!("Stride must be > 0, but got {stride}"));
        }
        if !outer(&dilations) {
            return Err(unimplemented_op!(
                "Current implementation does not yet support dilations in the batch and depth dimensions."
            ));
        }
        let dilations = layout.spatial_of(&dilations, 1);
        if let Some(dilation) = dilations.iter().find(|&&dilation| dilation <= 0) {
            return Err(invalid!("Dilation rate must be >= 1, but got {dilation}"));
        }
        Ok(Geometry {
            layout,
            strides: strides.map(|stride| stride as usize),
            dilations: dilations.map(|dilation| dilation as usize),
            padding: Padding::of(attrs, layout)?,
        })
    }

    /// How a window of this size walks over an image of this size.
    pub fn axes(&self, input: [usize; 3], filter: [usize; 3]) -> Result<[Axis; 3]> {
        let mut axes = [Axis::valid(1, 1, 1, 1); 3];
        for (i, axis) in axes.iter_mut().enumerate() {
            *axis = self.axis(i, input[i], filter[i])?;
        }
        Ok(axes)
    }

    fn axis(&self, i: usize, input: usize, filter: usize) -> Result<Axis> {
        let (stride, dilation) = (self.strides[i], self.dilations[i]);
        if i32::try_from(stride).is_err() {
            return Err(invalid!("Stride must be < 2^31, but got {stride}"));
        }
        let axis = match self.padding {
            Padding::Same => Axis::same(input, filter, stride, dilation),
            Padding::Valid => Some(Axis::valid(input, filter, stride, dilation)),
            Padding::Explicit(pads) => Some(Axis { pad: pads[i], ..Axis::valid(input, filter, stride, dilation) }),
        };
        let axis = axis.ok_or_else(|| invalid!("The window is too large: size {filter}, dilation {dilation}"))?;
        if axis.output().is_none() {
            let reach = (filter as i128 - 1) * dilation as i128 + 1;
            let padded = input as i128 + axis.pad.0 as i128 + axis.pad.1 as i128;
            return Err(invalid!(
                "Computed output size would be negative: {} [input_size: {input}, effective_filter_size: {reach}, \
                 stride: {stride}]",
                (padded - reach + stride as i128) / stride as i128
            ));
        }
        Ok(axis)
    }

    /// The size of the result along axis `i`, for a shape function: negative sizes are unknown.
    pub fn static_output(&self, i: usize, input: i64, filter: i64) -> Result<i64> {
        if input < 0 || (filter < 0 && !matches!(self.padding, Padding::Same)) {
            return Ok(-1);
        }
        if filter == 0 {
            return Err(invalid!("Dimension size must be positive, but is 0"));
        }
        let axis = self.axis(i, input as usize, filter.max(1) as usize)?;
        Ok(axis.output().map_or(-1, |size| size as i64))
    }
}

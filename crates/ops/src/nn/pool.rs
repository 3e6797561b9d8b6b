//! Shared by all poolings: windows and their checks, static shapes, and loops with channels last.

use super::geometry::{Attrs, Geometry, Images, Layout, Padding};
use math::pooling::PoolShape;
use op::shapes::integers;
use op::{Ctx, ShapeQuery};
use status::{Result, invalid, unimplemented_op};
use tensor::{Element, PartialShape, Shape, Tensor};

/// A pooling window and how it moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pooling {
    /// Strides and padding.
    pub geometry: Geometry,
    /// Depth, height and width of the window.
    pub window: [usize; 3],
    /// How many channels are pooled together.
    pub depth: usize,
}

impl Pooling {
    /// Reads the attributes `ksize`, `strides` and `padding`.
    pub fn of(attrs: &dyn Attrs, spatial: usize) -> Result<Pooling> {
        let layout = Layout::of(attrs, spatial)?;
        let padding = Padding::of(attrs, layout)?;
        Pooling::new(layout, padding, &attrs.integers("ksize")?, &attrs.integers("strides")?)
    }

    /// Builds a pooling with the window and strides of every axis.
    pub fn new(layout: Layout, padding: Padding, ksize: &[i64], strides: &[i64]) -> Result<Pooling> {
        check_sizes(layout, ksize, strides)?;
        let size = |values: &[i64]| layout.spatial_of(values, 1).map(|size| size as usize);
        let geometry = Geometry { layout, strides: size(strides), dilations: [1; 3], padding };
        let channel = layout.channel_axis();
        let pooling = Pooling { geometry, window: size(ksize), depth: ksize[channel] as usize };
        if pooling.depth > 1 && pooling.window != [1; 3] {
            return Err(unimplemented_op!(
                "MaxPooling supports exactly one of pooling across depth or pooling across width/height."
            ));
        }
        if pooling.depth as i64 != strides[channel] {
            return Err(unimplemented_op!("Depthwise max pooling requires the depth window to equal the depth stride"));
        }
        pooling.check_explicit()?;
        Ok(pooling)
    }

    /// The same, or an error if channels are pooled.
    pub fn spatial_only(self, what: &str) -> Result<Pooling> {
        match self.depth {
            1 => Ok(self),
            _ => Err(unimplemented_op!("{what}")),
        }
    }

    fn check_explicit(&self) -> Result<()> {
        let Padding::Explicit(pads) = self.geometry.padding else { return Ok(()) };
        let names = [("Top", "Bottom"), ("Left", "Right")];
        for (axis, names) in [1, 2].into_iter().zip(names) {
            for (name, pad) in [(names.0, pads[axis].0), (names.1, pads[axis].1)] {
                if pad >= self.window[axis] {
                    return Err(invalid!(
                        "{name} padding {pad} needs to be smaller than the window size {}",
                        self.window[axis]
                    ));
                }
            }
        }
        Ok(())
    }

    /// The sizes of a pooling of such a tensor, in space only.
    pub fn shape(&self, input: &Shape) -> Result<PoolShape> {
        let layout = self.geometry.layout;
        if input.rank() != layout.spatial + 2 {
            return Err(match layout.spatial {
                2 => invalid!("tensor_in_shape must have 2 spatial dimensions. {} 0", input.rank()),
                _ => invalid!("tensor_in must be 5-dimensional"),
            });
        }
        let images = layout.images(input);
        let axes = self.geometry.axes(images.size, self.window)?;
        PoolShape::new(images.batch, axes, images.channels).ok_or_else(|| invalid!("The pooling window is too large"))
    }

    /// The shape of the result.
    pub fn output(&self, shape: &PoolShape) -> Shape {
        self.geometry.layout.shape(Images { batch: shape.batch, size: shape.output, channels: shape.channels })
    }

    /// The sizes of a pooling whose input and result shapes are known; an error if they do not match.
    pub fn backward_shape(&self, input: &Shape, results: &[(&str, &Shape)]) -> Result<PoolShape> {
        let rank = self.geometry.layout.spatial + 2;
        for (name, shape) in [("tensor_in", input)].iter().chain(results) {
            if shape.rank() != rank {
                let name = match *name {
                    "orig_output" => "tensor_out",
                    "grad" => "out_backprop",
                    other => other,
                };
                return Err(invalid!("{name} must be {rank}-dimensional"));
            }
        }
        let shape = self.shape(input)?;
        let output = self.output(&shape);
        for (name, found) in results {
            check_shape(name, &output, found)?;
        }
        Ok(shape)
    }

    /// Runs `body` on the values of a tensor with channels last, and converts the result to the data format.
    pub fn run<T: Element>(
        &self,
        ctx: &Ctx<'_>,
        output: &Shape,
        body: impl FnOnce(&mut [T]) -> Result<()>,
    ) -> Result<Tensor> {
        let layout = self.geometry.layout;
        let last = Layout { channels_first: false, ..layout };
        let mut out = Tensor::scratch::<T>(last.shape(layout.images(output)))?;
        body(out.values_mut()?)?;
        layout.from_channels_last::<T>(ctx, out)
    }

    /// The tensor, channels last.
    pub fn channels_last<T: Element>(&self, ctx: &Ctx<'_>, tensor: Tensor) -> Result<Tensor> {
        self.geometry.layout.to_channels_last::<T>(ctx, tensor)
    }
}

/// An error unless an input has the shape that was computed for it.
pub(crate) fn check_shape(name: &str, wanted: &Shape, found: &Shape) -> Result<()> {
    match wanted == found {
        true => Ok(()),
        false => Err(invalid!("Expected {name} shape to be {wanted}, but got {found}")),
    }
}

fn check_sizes(layout: Layout, ksize: &[i64], strides: &[i64]) -> Result<()> {
    let rank = layout.spatial + 2;
    if ksize.len() != rank {
        return Err(invalid!("Sliding window ksize field must specify {rank} dimensions"));
    }
    if strides.len() != rank {
        return Err(invalid!("Sliding window strides field must specify {rank} dimensions"));
    }
    if ksize.iter().any(|&size| size <= 0) {
        let all: Vec<String> = ksize.iter().map(i64::to_string).collect();
        return Err(match layout.spatial {
            2 => {
                invalid!("Sliding window ksize must be positive. The specified or inferred ksize is: {}", all.join(","))
            }
            _ => invalid!("Sliding window ksize field must have non-negative dimensions"),
        });
    }
    if let Some(stride) = strides.iter().find(|&&stride| stride <= 0) {
        return Err(invalid!("Stride must be > 0, but got {stride}"));
    }
    if ksize[0] != 1 || strides[0] != 1 {
        return Err(unimplemented_op!("Pooling is not yet supported on the batch dimension."));
    }
    let channel = layout.channel_axis();
    if layout.spatial == 3 && (ksize[channel] != 1 || strides[channel] != 1) {
        return Err(unimplemented_op!("Pooling is not yet supported on the depth dimension."));
    }
    Ok(())
}

/// The static shape of the result of a pooling.
pub(crate) fn static_shape(query: &ShapeQuery<'_>, spatial: usize) -> Result<Vec<PartialShape>> {
    let pooling = Pooling::of(query, spatial)?;
    Ok(vec![static_output(&pooling, &query.inputs[0])?; query.outputs])
}

/// The shape of the result, as far as it is known, of a pooling whose window and strides are inputs.
pub(crate) fn static_shape_v2(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let layout = Layout::of(query, 2)?;
    let constant = |input: usize| query.constants.get(input).and_then(Option::as_ref).map(integers).transpose();
    let (Some(ksize), Some(strides)) = (constant(1)?, constant(2)?) else {
        return Ok(vec![PartialShape::of_rank(4)]);
    };
    let pooling = Pooling::new(layout, Padding::of(query, layout)?, &ksize, &strides)?;
    Ok(vec![static_output(&pooling, &query.inputs[0])?])
}

fn static_output(pooling: &Pooling, input: &PartialShape) -> Result<PartialShape> {
    let layout = pooling.geometry.layout;
    let input = input.merge(&PartialShape::of_rank(layout.spatial + 2))?;
    let Some(dims) = input.dims() else { return Ok(PartialShape::unknown()) };
    let mut out = dims.to_vec();
    for axis in 0..layout.spatial {
        let i = axis + 3 - layout.spatial;
        let at = layout.first_axis() + axis;
        out[at] = pooling.geometry.static_output(i, dims[at], pooling.window[i] as i64)?;
    }
    let channel = layout.channel_axis();
    out[channel] = if dims[channel] < 0 { -1 } else { dims[channel] / pooling.depth as i64 };
    Ok(PartialShape::new(&out))
}

//! Shared by convolutions over images and volumes: checks, static shapes, kernels.

use super::convolved::Convolved;
use super::geometry::{Geometry, Images};
use math::conv::ConvShape;
use math::gemm::Epilogue;
use op::shapes::{integers, shape_from_input};
use op::{Ctx, ShapeQuery};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

/// The sizes of a convolution of these operands.
pub(crate) fn forward_shape(geometry: &Geometry, input: &Shape, filter: &Shape) -> Result<ConvShape> {
    let rank = geometry.layout.spatial + 2;
    if input.rank() != rank {
        return Err(invalid!("convolution input must be {rank}-dimensional: {input}"));
    }
    if filter.rank() != rank {
        return Err(invalid!("convolution filter must be {rank}-dimensional: {filter}"));
    }
    let images = geometry.layout.images(input);
    let (in_depth, filter_depth, out_depth) = (images.channels, filter[rank - 2], filter[rank - 1]);
    if filter_depth == 0 {
        return Err(invalid!("filter depth must be stricly positive, got 0"));
    }
    if !in_depth.is_multiple_of(filter_depth) {
        return Err(invalid!("input depth must be evenly divisible by filter depth: {in_depth} vs {filter_depth}"));
    }
    let groups = in_depth / filter_depth;
    if groups == 0 {
        return Err(invalid!("number of groups must be stricly positive, got 0"));
    }
    if !out_depth.is_multiple_of(groups) {
        return Err(invalid!("output depth must be evenly divisible by number of groups: {out_depth} vs {groups}"));
    }
    conv_shape(geometry, images, filter)
}

/// The sizes of a convolution whose channels have been checked.
fn conv_shape(geometry: &Geometry, images: Images, filter: &Shape) -> Result<ConvShape> {
    let rank = filter.rank();
    let window = window(filter);
    if window.contains(&0) {
        return Err(invalid!("filter must not have zero elements (i.e. all dimensions must be non-zero)"));
    }
    let axes = geometry.axes(images.size, window)?;
    ConvShape::new(images.batch, axes, images.channels, filter[rank - 2], filter[rank - 1])
        .ok_or_else(|| invalid!("Tensor too large"))
}

/// Depth, height and width of a filter, the depth of an image filter being one.
pub(crate) fn window(filter: &Shape) -> [usize; 3] {
    let spatial = filter.rank() - 2;
    std::array::from_fn(|i| (i + spatial).checked_sub(3).map_or(1, |axis| filter[axis]))
}

/// The sizes of the convolution of which this is a derivative.
pub(crate) fn backward_shape(
    label: &str,
    geometry: &Geometry,
    input: &Shape,
    filter: &Shape,
    grad: &Shape,
) -> Result<ConvShape> {
    let rank = geometry.layout.spatial + 2;
    for (name, shape) in [("input", input), ("filter", filter), ("out_backprop", grad)] {
        if shape.rank() != rank {
            return Err(invalid!("{label}: {name} must be {rank}-dimensional"));
        }
    }
    let (images, grads) = (geometry.layout.images(input), geometry.layout.images(grad));
    if images.batch != grads.batch {
        return Err(invalid!(
            "{label}: input and out_backprop must have the same batch size. Input batch: {}, outbackprop batch: {}, \
             batch_dim: 0",
            images.batch,
            grads.batch
        ));
    }
    let (filter_depth, out_depth) = (filter[rank - 2], filter[rank - 1]);
    if filter_depth == 0 {
        return Err(invalid!("{label}: filter depth must be strictly greated than zero"));
    }
    if images.channels == 0 || !images.channels.is_multiple_of(filter_depth) {
        return Err(invalid!("{label}: input depth must be evenly divisible by filter depth"));
    }
    if out_depth != grads.channels {
        return Err(invalid!("{label}: filter and out_backprop must have the same out_depth"));
    }
    if !out_depth.is_multiple_of(images.channels / filter_depth) {
        return Err(invalid!("{label}: output depth must be evenly divisible by number of groups"));
    }
    let shape = conv_shape(geometry, images, filter)?;
    check_grad_size(label, geometry, &shape, grads.size)?;
    Ok(shape)
}

fn check_grad_size(label: &str, geometry: &Geometry, shape: &ConvShape, found: [usize; 3]) -> Result<()> {
    let Some(i) = (0..3).find(|&i| shape.output[i] != found[i]) else { return Ok(()) };
    Err(invalid!(
        "{label}: Size of out_backprop doesn't match computed: actual = {}, computed = {} spatial_dim: {} input: {} \
         filter: {} output: {} stride: {} dilation: {}",
        found[i],
        shape.output[i],
        i + geometry.layout.spatial - 3 + geometry.layout.first_axis(),
        shape.input[i],
        shape.filter[i],
        found[i],
        shape.stride[i],
        shape.dilation[i]
    ))
}

/// The shape that a vector of sizes means.
pub(crate) fn made_shape(sizes: &Tensor) -> Result<Shape> {
    let dims = integers(sizes)?;
    match dims.iter().find(|&&dim| dim < 0) {
        Some(negative) => Err(invalid!("Dimension {negative} must be >= 0")),
        None => Shape::checked(&dims),
    }
}

/// The convolution of two tensors.
pub(crate) fn run_forward<T: Convolved>(
    ctx: &Ctx<'_>,
    geometry: &Geometry,
    input: Tensor,
    filter: &Tensor,
    end: Epilogue<'_, T>,
) -> Result<Tensor> {
    let shape = forward_shape(geometry, input.shape(), filter.shape())?;
    let layout = geometry.layout;
    let last = super::geometry::Layout { channels_first: false, ..layout };
    let images = Images { batch: shape.batch, size: shape.output, channels: shape.out_channels };
    let mut out = Tensor::scratch_of(input.dtype(), last.shape(images))?;
    let input = layout.to_channels_last::<T>(ctx, input)?;
    T::forward(ctx.pool(), &shape, input.values()?, filter.values()?, end, out.values_mut()?);
    layout.from_channels_last::<T>(ctx, out)
}

/// The derivative by the input, which has this shape.
pub(crate) fn run_grad_input<T: Convolved>(
    ctx: &Ctx<'_>,
    label: &str,
    geometry: &Geometry,
    input: &Shape,
    filter: Tensor,
    grad: Tensor,
) -> Result<Tensor> {
    let shape = backward_shape(label, geometry, input, filter.shape(), grad.shape())?;
    let layout = geometry.layout;
    let last = super::geometry::Layout { channels_first: false, ..layout };
    let mut out = Tensor::scratch::<T>(last.shape(layout.images(input)))?;
    let grad = layout.to_channels_last::<T>(ctx, grad)?;
    T::grad_input(ctx.pool(), &shape, filter.values()?, grad.values()?, out.values_mut()?);
    layout.from_channels_last::<T>(ctx, out)
}

/// The derivative by the filter, which has this shape.
pub(crate) fn run_grad_filter<T: Convolved>(
    ctx: &Ctx<'_>,
    label: &str,
    geometry: &Geometry,
    input: Tensor,
    filter: &Shape,
    grad: Tensor,
) -> Result<Tensor> {
    let shape = backward_shape(label, geometry, input.shape(), filter, grad.shape())?;
    let mut out = Tensor::scratch::<T>(filter)?;
    let input = geometry.layout.to_channels_last::<T>(ctx, input)?;
    let grad = geometry.layout.to_channels_last::<T>(ctx, grad)?;
    T::grad_filter(ctx.pool(), &shape, input.values()?, grad.values()?, out.values_mut()?);
    Ok(out)
}

/// The static shape of the result of a convolution.
pub(crate) fn static_forward(query: &ShapeQuery<'_>, spatial: usize) -> Result<Vec<PartialShape>> {
    let geometry = Geometry::of_conv(query, spatial)?;
    let rank = spatial + 2;
    let input = query.inputs[0].merge(&PartialShape::of_rank(rank))?;
    let filter = query.inputs[1].merge(&PartialShape::of_rank(rank))?;
    let (Some(input), Some(filter)) = (input.dims(), filter.dims()) else { return op::shapes::unknown(query) };
    check_static_channels(input[geometry.layout.channel_axis()], filter[rank - 2], filter[rank - 1])?;
    let mut dims = vec![input[0]];
    for axis in 0..spatial {
        let size = input[geometry.layout.first_axis() + axis];
        dims.push(geometry.static_output(axis + 3 - spatial, size, filter[axis])?);
    }
    dims.insert(geometry.layout.channel_axis(), filter[rank - 1]);
    Ok(vec![PartialShape::new(&dims)])
}

fn check_static_channels(input: i64, filter: i64, output: i64) -> Result<()> {
    if filter == 0 {
        return Err(invalid!("Depth of filter must not be 0"));
    }
    if input < 0 || filter < 0 {
        return Ok(());
    }
    if input % filter != 0 {
        return Err(invalid!("Depth of input ({input}) is not a multiple of input depth of filter ({filter})"));
    }
    let groups = input / filter;
    if groups == 0 {
        return Err(invalid!("Number of groups must not be 0"));
    }
    if output >= 0 && output % groups != 0 {
        return Err(invalid!("Depth of output ({output}) is not a multiple of the number of groups ({groups})"));
    }
    Ok(())
}

/// The shape is the value of an input, and has this rank.
pub(crate) fn static_sizes(query: &ShapeQuery<'_>, input: usize, rank: usize) -> Result<Vec<PartialShape>> {
    let shape = shape_from_input(query, input);
    Ok(vec![shape.merge(&PartialShape::of_rank(rank)).unwrap_or(PartialShape::of_rank(rank))])
}

//! The same elements in another shape: Reshape, ExpandDims, Squeeze.

use super::shape::shape;
use graph::{AttrValue, Node, Output, ShapeQuery};
use op::shapes::integers;
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads, unary};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Reshape(tensor: T, shape: Tshape) -> output: T; T: type; Tshape: {int32, int64} = int32",
        shape: reshape_shape,
        grad: Grad::Rule(reshape_rule),
        kernel: reshape_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ExpandDims(input: T, dim: Tdim) -> output: T; T: type; Tdim: {int32, int64} = int32",
        shape: expand_dims_shape,
        grad: Grad::Rule(reshape_rule),
        kernel: expand_dims_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Squeeze(input: T) -> output: T; T: type; squeeze_dims: list(int) >= 0 = []",
        shape: squeeze_shape,
        grad: Grad::Rule(squeeze_rule),
        kernel: squeeze_kernel,
        facts: PLAIN,
    },
];

/// The elements of `tensor` in the shape given by the vector `shape`; one -1 is inferred.
pub fn reshape(tensor: &Output, shape: &Output) -> Output {
    tensor.scope().op("Reshape").input(tensor).input(shape).output()
}

/// The elements of `tensor` in a shape known when the graph is built; one -1 is inferred.
pub fn reshape_to(tensor: &Output, dims: &[i64]) -> Output {
    let dims = super::constant::constant(tensor.scope(), Tensor::vector::<i64>(dims));
    reshape(tensor, &dims)
}

/// `input` with an axis of length one put in before axis `dim`; -1 is after the last.
pub fn expand_dims(input: &Output, dim: i32) -> Output {
    let dim = super::constant::constant(input.scope(), Tensor::scalar(dim));
    input.scope().op("ExpandDims").input(input).input(&dim).output()
}

/// `input` without its axes of length one, or without those named.
pub fn squeeze(input: &Output, dims: &[i64]) -> Output {
    input.scope().op("Squeeze").input(input).attr("squeeze_dims", dims).output()
}

fn reshape_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![reshape(dy, &shape(&op.input(0))), NoGradient])
}

fn squeeze_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![reshape(dy, &shape(&op.input(0)))])
}

/// The static shape of the elements of input 0 in the shape of input 1.
pub(crate) fn reshape_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some(sizes) = query.constants[1].as_ref().map(integers).transpose()? else {
        let rank = match query.inputs[1].dims() {
            Some([count]) if (0..Shape::MAX_RANK as i64).contains(count) => PartialShape::of_rank(*count as usize),
            _ => PartialShape::unknown(),
        };
        return Ok(vec![rank]);
    };
    match query.inputs[0].known() {
        Some(input) => Ok(vec![resolve(&sizes, &input)?.into()]),
        None => Ok(vec![PartialShape::new(&sizes)]),
    }
}

fn expand_dims_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    let Some(dim) = query.constants[1].as_ref().map(one_axis).transpose()? else {
        return Ok(vec![PartialShape::of_rank(dims.len() + 1)]);
    };
    let at = expanded_axis(dim, dims.len())?;
    let mut dims = dims.to_vec();
    dims.insert(at, 1);
    Ok(vec![PartialShape::new(&dims)])
}

fn squeeze_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    let named = match query.attr("squeeze_dims")? {
        AttrValue::List(list) => list.ints.as_slice(),
        _ => &[],
    };
    if named.is_empty() && dims.contains(&-1) {
        return Ok(vec![PartialShape::unknown()]);
    }
    let kept = squeezed_axes(named, dims.len())?;
    if let Some((_, dim)) = kept.iter().zip(dims).find(|&(kept, &dim)| *kept == Some(false) && dim > 1) {
        return Err(invalid!("Can not squeeze dim[{}], expected a dimension of 1, got {dim}", position(&kept, dims)));
    }
    let left: Vec<i64> = kept.iter().zip(dims).filter(|(kept, dim)| kept.unwrap_or(**dim != 1)).map(|p| *p.1).collect();
    Ok(vec![PartialShape::new(&left)])
}

fn position(kept: &[Option<bool>], dims: &[i64]) -> usize {
    kept.iter().zip(dims).position(|(kept, &dim)| *kept == Some(false) && dim > 1).unwrap_or(0)
}

fn reshape_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|_, tensor, sizes| reshaped(tensor, &sizes)).free())
}

/// The elements of a tensor in the shape of a vector.
pub(crate) fn reshaped(tensor: Tensor, sizes: &Tensor) -> Result<Tensor> {
    if sizes.shape().rank() > 1 {
        return Err(invalid!("sizes input must be 1-D, not {}", sizes.shape()));
    }
    let shape = resolve(&integers(sizes)?, tensor.shape())?;
    tensor.reshaped(shape)
}

/// The shape in `sizes` for the elements of `input`, with -1 replaced.
fn resolve(sizes: &[i64], input: &Shape) -> Result<Shape> {
    if sizes.len() >= Shape::MAX_RANK {
        let limit = Shape::MAX_RANK;
        return Err(invalid!("too many dimensions: must be < {limit}, but received {}", sizes.len()));
    }
    let (mut shape, unknown) = requested_shape(sizes)?;
    if let Some(axis) = unknown {
        shape.dims_mut()[axis] = missing_size(&shape, axis, input)?;
    }
    let (elements, found) = (input.checked_elements()?, shape.checked_elements()?);
    if found != elements {
        return Err(invalid!(
            "Input to reshape is a tensor with {elements} values, but the requested shape has {found}"
        ));
    }
    Ok(shape)
}

/// The sizes as a shape, with 1 in place of -1, and the position of the -1.
fn requested_shape(sizes: &[i64]) -> Result<(Shape, Option<usize>)> {
    let (mut shape, mut unknown) = (Shape::scalar(), None);
    for (axis, &size) in sizes.iter().enumerate() {
        match (size, unknown) {
            (-1, Some(other)) => return Err(invalid!("Only one input size may be -1, not both {other} and {axis}")),
            (-1, None) => unknown = Some(axis),
            (..0, _) => return Err(invalid!("Size {axis} must be non-negative, not {size}")),
            _ => {}
        }
        shape.dims_mut().push(if size == -1 { 1 } else { size as usize });
    }
    if counted(&shape, true).is_none() {
        let listed: Vec<String> = sizes.iter().map(i64::to_string).collect();
        return Err(invalid!("Shape [{}] has too many elements", listed.join(", ")));
    }
    Ok((shape, unknown))
}

/// The size that replaces -1. Axes of length zero do not determine the others: if both sides have some, they are left
/// out on both.
fn missing_size(shape: &Shape, unknown: usize, input: &Shape) -> Result<usize> {
    let empty = shape.iter().enumerate().any(|(axis, &dim)| dim == 0 && axis != unknown);
    let product = counted(shape, true).unwrap_or(1);
    let elements = counted(input, empty).unwrap_or(0);
    let tells_nothing = empty && input.contains(&0);
    if !tells_nothing && !elements.is_multiple_of(product) {
        return Err(invalid!(
            "Input to reshape is a tensor with {elements} values, but the requested shape requires a multiple of \
             {product}"
        ));
    }
    Ok(elements / product)
}

/// The product of all dimensions, or of those that are not zero; none if it is too large.
fn counted(shape: &Shape, skip_zeros: bool) -> Option<usize> {
    let mut dims = shape.iter().filter(|&&dim| !skip_zeros || dim > 0);
    dims.try_fold(1_usize, |product, &dim| product.checked_mul(dim).filter(|&p| p <= i64::MAX as usize))
}

fn expand_dims_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|_, input, dim| {
        if input.dtype() == DType::VARIANT {
            return Err(invalid!("ExpandDims on Variant not supported"));
        }
        let mut shape = input.shape().clone();
        let axis = expanded_axis(one_axis(&dim)?, shape.rank())?;
        shape.dims_mut().insert(axis, 1);
        input.reshaped(shape)
    })
    .free())
}

fn one_axis(dim: &Tensor) -> Result<i64> {
    match integers(dim)?.as_slice() {
        [dim] => Ok(*dim),
        _ => Err(invalid!("'dim' must be a tensor with a single value")),
    }
}

/// The position of the new axis.
fn expanded_axis(dim: i64, rank: usize) -> Result<usize> {
    let count = rank as i64;
    if dim < -1 - count || dim > count {
        return Err(invalid!("Tried to expand dim index {dim} for tensor with {rank} dimensions."));
    }
    Ok(if dim < 0 { dim + count + 1 } else { dim } as usize)
}

fn squeeze_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dims = setup.ints("squeeze_dims")?;
    Ok(unary(move |_, input| run_squeeze(&dims, input)).free())
}

fn run_squeeze(dims: &[i64], input: Tensor) -> Result<Tensor> {
    if input.dtype() == DType::VARIANT {
        return Err(invalid!("Squeeze on Variant not supported"));
    }
    let kept = squeezed_axes(dims, input.shape().rank())?;
    for (axis, (kept, &dim)) in kept.iter().zip(input.shape().iter()).enumerate() {
        if *kept == Some(false) && dim != 1 {
            return Err(invalid!("Can not squeeze dim[{axis}], expected a dimension of 1, got {dim}"));
        }
    }
    let left = kept.iter().zip(input.shape().iter()).filter(|(kept, dim)| kept.unwrap_or(**dim != 1));
    let shape: Shape = left.map(|(_, &dim)| dim).collect();
    input.reshaped(shape)
}

/// For each axis, whether it is kept; none for all axes if the attribute is empty.
fn squeezed_axes(named: &[i64], rank: usize) -> Result<Vec<Option<bool>>> {
    let mut kept = vec![(!named.is_empty()).then_some(true); rank];
    for &dim in named {
        let axis = if dim < 0 { dim + rank as i64 } else { dim };
        match usize::try_from(axis).ok().and_then(|axis| kept.get_mut(axis)) {
            Some(kept) => *kept = Some(false),
            None => return Err(invalid!("Tried to squeeze dim index {dim} for tensor with {rank} dimensions.")),
        }
    }
    Ok(kept)
}

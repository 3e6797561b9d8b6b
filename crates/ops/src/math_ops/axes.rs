//! The axes that a reduction removes: at run time, and statically as far as they are known.

use op::ShapeQuery;
use op::shapes::integers;
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

/// For each axis of `shape` whether it is reduced.
pub(super) fn reduced_axes(shape: &Shape, axes: &Tensor) -> Result<Vec<bool>> {
    let mut reduced = vec![false; shape.rank()];
    for axis in integers(axes)? {
        let place = place_of(axis, shape.rank()).ok_or_else(|| {
            invalid!("Invalid reduction dimension ({axis} for input with {} dimension(s)", shape.rank())
        })?;
        if std::mem::replace(&mut reduced[place], true) {
            return Err(invalid!("Invalid reduction arguments: Axes contains duplicate dimension: {place}"));
        }
    }
    Ok(reduced)
}

/// An axis counted from the front; none if it is out of range.
pub(super) fn place_of(axis: i64, rank: usize) -> Option<usize> {
    let rank = rank as i64;
    (-rank..rank).contains(&axis).then_some(if axis < 0 { axis + rank } else { axis } as usize)
}

/// The shape without the axes that are removed.
pub(super) fn reduced_shape(shape: &Shape, reduced: &[bool], keep_dims: bool) -> Shape {
    let axes = shape.iter().zip(reduced);
    axes.filter(|(_, reduced)| keep_dims || !**reduced).map(|(&dim, &reduced)| if reduced { 1 } else { dim }).collect()
}

/// The shape of a reduction's result, from its input and, if they are constant, its axes.
pub(super) fn reduction_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let keep_dims = matches!(query.attr("keep_dims")?, graph::AttrValue::Bool(true));
    let input = &query.inputs[0];
    let Some(dims) = input.dims() else { return Ok(vec![PartialShape::unknown()]) };
    let Some(axes) = query.constants.get(1).and_then(Option::as_ref) else {
        let shape = if keep_dims { PartialShape::of_rank(dims.len()) } else { PartialShape::unknown() };
        return Ok(vec![shape]);
    };
    let mut reduced = vec![false; dims.len()];
    for axis in integers(axes)? {
        let place = place_of(axis, dims.len())
            .ok_or_else(|| invalid!("Invalid reduction dimension {axis} for input with {} dimensions.", dims.len()))?;
        reduced[place] = true;
    }
    let left = dims.iter().zip(reduced).filter(|(_, reduced)| keep_dims || !reduced);
    let left: Vec<i64> = left.map(|(&dim, reduced)| if reduced { 1 } else { dim }).collect();
    Ok(vec![PartialShape::new(&left)])
}

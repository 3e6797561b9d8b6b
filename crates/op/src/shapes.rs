//! Shape functions shared by many ops.

use graph::{AttrValue, ShapeQuery};
use status::{Result, invalid};
use tensor::PartialShape;

/// All outputs have unknown rank.
pub fn unknown(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::unknown(); query.outputs])
}

/// Every output has the shape of the first input.
pub fn unchanged(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let first = query.inputs.first().cloned().unwrap_or(PartialShape::unknown());
    Ok(vec![first; query.outputs])
}

/// All outputs are scalars.
pub fn scalar(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::scalar(); query.outputs])
}

/// The op has no outputs.
pub fn none(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(Vec::new())
}

/// All inputs have the same shape, and so has the output.
pub fn merged(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let mut merged = PartialShape::unknown();
    for shape in query.inputs {
        merged = merged.merge(shape)?;
    }
    Ok(vec![merged; query.outputs])
}

/// The output has the shape in attribute `shape`.
pub fn attr_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    match query.attr("shape")? {
        AttrValue::Shape(shape) => Ok(vec![shape.clone(); query.outputs]),
        _ => unknown(query),
    }
}

/// The two inputs are broadcast against each other.
pub fn broadcast(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let shape = broadcast_shapes(&query.inputs[0], &query.inputs[1])?;
    Ok(vec![shape; query.outputs])
}

/// The shape of the result when two shapes are broadcast against each other.
pub fn broadcast_shapes(a: &PartialShape, b: &PartialShape) -> Result<PartialShape> {
    let (Some(x), Some(y)) = (a.dims(), b.dims()) else { return Ok(PartialShape::unknown()) };
    let rank = x.len().max(y.len());
    let at = |dims: &[i64], axis: usize| match (axis + dims.len()).checked_sub(rank) {
        Some(place) => dims[place],
        None => 1,
    };
    let mut out = Vec::with_capacity(rank);
    for axis in 0..rank {
        out.push(match (at(x, axis), at(y, axis)) {
            (1, d) | (d, 1) => d,
            (-1, d) | (d, -1) => d,
            (d, e) if d == e => d,
            (d, e) => {
                return Err(invalid!("Dimensions must be equal, but are {d} and {e}"));
            }
        });
    }
    Ok(PartialShape::new(&out))
}

/// The static value of a shape input, as far as it is known.
pub fn shape_from_input(query: &ShapeQuery<'_>, input: usize) -> PartialShape {
    match query.constants.get(input).and_then(Option::as_ref).map(integers) {
        Some(Ok(dims)) => PartialShape::new(&dims),
        _ => match query.inputs.get(input).and_then(|shape| shape.dim(0)) {
            Some(rank) if rank <= tensor::Shape::MAX_RANK => PartialShape::of_rank(rank),
            _ => PartialShape::unknown(),
        },
    }
}

/// The elements of an int32 or int64 tensor (or another integer type) as i64.
pub fn integers(tensor: &tensor::Tensor) -> Result<Vec<i64>> {
    use tensor::DType;
    Ok(match tensor.dtype() {
        DType::I32 => tensor.values::<i32>()?.iter().map(|&v| v.into()).collect(),
        DType::I64 => tensor.values::<i64>()?.to_vec(),
        DType::I16 => tensor.values::<i16>()?.iter().map(|&v| v.into()).collect(),
        DType::I8 => tensor.values::<i8>()?.iter().map(|&v| v.into()).collect(),
        DType::U8 => tensor.values::<u8>()?.iter().map(|&v| v.into()).collect(),
        DType::U16 => tensor.values::<u16>()?.iter().map(|&v| v.into()).collect(),
        DType::U32 => tensor.values::<u32>()?.iter().map(|&v| v.into()).collect(),
        DType::U64 => tensor.values::<u64>()?.iter().map(|&v| v as i64).collect(),
        other => return Err(invalid!("Expected a tensor of integers, got one of type {other}")),
    })
}

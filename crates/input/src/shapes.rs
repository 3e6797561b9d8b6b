//! Shapes of elements.

use tensor::PartialShape;

/// The shape without its first dimension.
pub(crate) fn without_first(shape: &PartialShape) -> PartialShape {
    match shape.dims() {
        Some([_, rest @ ..]) => PartialShape::new(rest),
        _ => PartialShape::unknown(),
    }
}

/// The shape with one more dimension in front, -1 if its size is unknown.
pub(crate) fn with_first(shape: &PartialShape, size: i64) -> PartialShape {
    match shape.dims() {
        Some(dims) => PartialShape::new(&[&[size], dims].concat()),
        None => PartialShape::unknown(),
    }
}

/// What all shapes have in common.
pub(crate) fn common(mut shapes: impl Iterator<Item = PartialShape>) -> PartialShape {
    let Some(first) = shapes.next() else { return PartialShape::unknown() };
    shapes.fold(first, |a, b| match (a.dims(), b.dims()) {
        (Some(x), Some(y)) if x.len() == y.len() => {
            PartialShape::new(&x.iter().zip(y).map(|(&x, &y)| if x == y { x } else { -1 }).collect::<Vec<_>>())
        }
        _ => PartialShape::unknown(),
    })
}

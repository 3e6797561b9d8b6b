//! Static shapes: what is known of a shape before the graph runs.

use crate::Shape;
use smallvec::SmallVec;
use status::{Result, invalid};
use std::fmt;

/// A shape whose dimensions, or whose rank, may be unknown.
///
/// # Examples
///
/// ```
/// use flowgrid_tensor::{PartialShape, Shape};
///
/// let batches = PartialShape::new(&[-1, 2]);
/// assert!(batches.accepts(&Shape::from([7, 2])));
/// assert!(!batches.accepts(&Shape::from([7, 3])));
/// assert_eq!(batches.merge(&PartialShape::new(&[5, -1]))?.known(), Some(Shape::from([5, 2])));
/// # Ok::<(), status::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PartialShape(Option<SmallVec<[i64; 4]>>);

/// Marks an unknown dimension, as in `TensorShapeProto`.
const UNKNOWN: i64 = -1;

impl PartialShape {
    /// A shape of unknown rank.
    pub const fn unknown() -> PartialShape {
        PartialShape(None)
    }

    /// The shape of a scalar: rank 0.
    pub fn scalar() -> PartialShape {
        PartialShape(Some(SmallVec::new()))
    }

    /// Dimensions, negative where unknown.
    pub fn new(dims: &[i64]) -> PartialShape {
        PartialShape(Some(dims.iter().map(|&d| d.max(UNKNOWN)).collect()))
    }

    /// A rank with all dimensions unknown.
    pub fn of_rank(rank: usize) -> PartialShape {
        PartialShape(Some(SmallVec::from_elem(UNKNOWN, rank)))
    }

    /// The dimensions, -1 where unknown; none if the rank is unknown.
    pub fn dims(&self) -> Option<&[i64]> {
        self.0.as_deref()
    }

    /// The rank, if known.
    pub fn rank(&self) -> Option<usize> {
        self.0.as_ref().map(|dims| dims.len())
    }

    /// One dimension, if known.
    pub fn dim(&self, axis: usize) -> Option<usize> {
        let dim = *self.0.as_ref()?.get(axis)?;
        usize::try_from(dim).ok()
    }

    /// The shape, if every dimension is known.
    pub fn known(&self) -> Option<Shape> {
        self.0.as_ref()?.iter().map(|&d| usize::try_from(d).ok()).collect::<Option<Vec<_>>>().map(Shape::from)
    }

    /// True if a value of this shape matches the description.
    pub fn accepts(&self, shape: &Shape) -> bool {
        match &self.0 {
            None => true,
            Some(dims) => {
                dims.len() == shape.rank() && dims.iter().zip(shape.iter()).all(|(&d, &s)| d < 0 || d == s as i64)
            }
        }
    }

    /// True if at least one shape matches both descriptions.
    pub fn compatible(&self, other: &PartialShape) -> bool {
        self.merge(other).is_ok()
    }

    /// The combination of both descriptions; an error if they contradict each other.
    pub fn merge(&self, other: &PartialShape) -> Result<PartialShape> {
        let (Some(a), Some(b)) = (&self.0, &other.0) else {
            return Ok(if self.0.is_some() { self.clone() } else { other.clone() });
        };
        if a.len() != b.len() {
            return Err(invalid!(
                "Shapes must be equal rank, but are {} and {} for shapes {self} and {other}",
                a.len(),
                b.len()
            ));
        }
        let mut merged = a.clone();
        for (axis, (&x, &y)) in a.iter().zip(b).enumerate() {
            if x >= 0 && y >= 0 && x != y {
                return Err(invalid!(
                    "Dimension {axis} in both shapes must be equal, but are {x} and {y}. Shapes are {self} and {other}"
                ));
            }
            merged[axis] = x.max(y);
        }
        Ok(PartialShape(Some(merged)))
    }
}

impl From<&Shape> for PartialShape {
    fn from(shape: &Shape) -> PartialShape {
        PartialShape(Some(shape.to_i64()))
    }
}

impl From<Shape> for PartialShape {
    fn from(shape: Shape) -> PartialShape {
        PartialShape::from(&shape)
    }
}

impl fmt::Display for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(dims) = &self.0 else { return f.write_str("<unknown>") };
        f.write_str("[")?;
        for (i, &dim) in dims.iter().enumerate() {
            f.write_str(if i > 0 { "," } else { "" })?;
            if dim < 0 { f.write_str("?")? } else { write!(f, "{dim}")? }
        }
        f.write_str("]")
    }
}

impl fmt::Debug for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

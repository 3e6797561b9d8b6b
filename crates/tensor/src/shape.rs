//! The shape of a value, with every dimension known.

use smallvec::SmallVec;
use status::{Result, invalid};
use std::fmt;
use std::ops::Deref;

/// Dimensions of a value, outermost first; reads as a slice of them.
///
/// # Examples
///
/// ```
/// use flowgrid_tensor::Shape;
///
/// let shape = Shape::from([2, 3]);
/// assert_eq!((shape.rank(), shape.elements()), (2, 6));
/// assert_eq!(shape.to_string(), "[2,3]");
/// ```
#[derive(PartialEq, Eq, Hash, Default)]
pub struct Shape(SmallVec<[usize; 4]>);

impl Clone for Shape {
    /// Copies all dimensions at once instead of one by one, because creating or sharing a tensor clones its shape.
    #[inline]
    fn clone(&self) -> Shape {
        Shape(SmallVec::from_slice(&self.0))
    }
}

impl Shape {
    /// The largest rank of a tensor, as in TensorFlow.
    pub const MAX_RANK: usize = 254;

    /// The shape of a scalar: rank 0.
    pub fn scalar() -> Shape {
        Shape::default()
    }

    /// A shape of these dimensions.
    pub fn new(dims: &[usize]) -> Shape {
        Shape(SmallVec::from_slice(dims))
    }

    /// A shape from untrusted numbers. Negative dimensions, too many dimensions and an element count that overflows
    /// are errors.
    pub fn checked(dims: &[i64]) -> Result<Shape> {
        if dims.len() > Shape::MAX_RANK {
            return Err(invalid!(
                "Shape has {} dimensions, which is over the limit of {}",
                dims.len(),
                Shape::MAX_RANK
            ));
        }
        if let Some(&negative) = dims.iter().find(|&&d| d < 0) {
            return Err(invalid!("Expected a non-negative size, got {negative}"));
        }
        let shape: Shape = dims.iter().map(|&d| d as usize).collect();
        shape.checked_elements()?;
        Ok(shape)
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// The dimensions, for writing.
    pub fn dims_mut(&mut self) -> &mut SmallVec<[usize; 4]> {
        &mut self.0
    }

    /// The number of elements. Cannot overflow for the shape of an existing tensor, which was checked when it was
    /// built.
    pub fn elements(&self) -> usize {
        self.0.iter().fold(1, |count, &dim| count.saturating_mul(dim))
    }

    /// The number of elements; an error if it does not fit in 63 bits.
    pub fn checked_elements(&self) -> Result<usize> {
        let mut product: i64 = 1;
        for &dim in &self.0 {
            let next = i64::try_from(dim).ok().and_then(|d| product.checked_mul(d));
            match next {
                Some(next) => product = next,
                None if self.0.contains(&0) => return Ok(0),
                None => {
                    return Err(invalid!(
                        "Encountered overflow when multiplying {product} with {dim}, result: -1 (shape {self})"
                    ));
                }
            }
        }
        Ok(product as usize)
    }

    /// Row-major strides, in elements.
    pub fn strides(&self) -> SmallVec<[usize; 4]> {
        let mut strides: SmallVec<[usize; 4]> = SmallVec::from_elem(1, self.rank());
        for axis in (1..self.rank()).rev() {
            strides[axis - 1] = strides[axis] * self.0[axis];
        }
        strides
    }

    /// The dimensions as `i64`, the element type of shape tensors.
    pub fn to_i64(&self) -> SmallVec<[i64; 4]> {
        self.0.iter().map(|&d| d as i64).collect()
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(dims: I) -> Shape {
        Shape(dims.into_iter().collect())
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Shape {
        Shape::new(dims)
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Shape {
        shape.clone()
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Shape {
        Shape(dims.into())
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Shape {
        Shape::new(&dims)
    }
}

impl<const N: usize> From<&[usize; N]> for Shape {
    fn from(dims: &[usize; N]) -> Shape {
        Shape::new(dims)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, dim) in self.0.iter().enumerate() {
            write!(f, "{}{dim}", if i > 0 { "," } else { "" })?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

//! Indices in tensors: reads and checks them, and names them in errors.

use status::{Result, invalid};
use std::fmt::Display;
use tensor::{DType, Element, Shape, Tensor};

/// An integer that may stand in an index tensor.
pub(crate) trait Index: Element + Display + Ord {
    /// The index as usize, if it is in range of `limit`.
    fn below(self, limit: usize) -> Option<usize>;
    /// The index as i64.
    fn wide(self) -> i64;
}

macro_rules! index {
    ($($t:ty),*) => {$(
        impl Index for $t {
            #[inline(always)]
            fn below(self, limit: usize) -> Option<usize> {
                // A negative number becomes too large a one.
                let place = self as usize;
                if place < limit { Some(place) } else { None }
            }

            #[inline(always)]
            fn wide(self) -> i64 {
                self as i64
            }
        }
    )*};
}

index!(i8, i16, i32, i64, u8, u16);

/// `for_indices!(tensor, values: I => body)`: the body with the integers of an index tensor.
macro_rules! for_indices {
    ($tensor:expr, $values:ident: $I:ident => $body:expr) => {{
        let tensor: &tensor::Tensor = $tensor;
        match tensor.dtype() {
            tensor::DType::I32 => for_indices!(@ i32, tensor, $values: $I => $body),
            tensor::DType::I64 => for_indices!(@ i64, tensor, $values: $I => $body),
            tensor::DType::I16 => for_indices!(@ i16, tensor, $values: $I => $body),
            tensor::DType::U16 => for_indices!(@ u16, tensor, $values: $I => $body),
            other => Err(status::invalid!("Expected indices of an integer type, got {other}")),
        }
    }};
    (@ $int:ty, $tensor:expr, $values:ident: $I:ident => $body:expr) => {{
        #[allow(dead_code)]
        type $I = $int;
        let $values: &[$I] = $tensor.values::<$I>()?;
        $body
    }};
}

/// The place of the first index that is not below `limit`.
pub(crate) fn first_outside<I: Index>(indices: &[I], limit: usize) -> Option<usize> {
    // Extremes of blocks are compared first: that vectorises, and indices are almost always in range.
    indices.chunks(1024).position(|block| !block_inside(block, limit)).map(|block| {
        let start = block * 1024;
        let found = indices[start..].iter().position(|index| index.below(limit).is_none());
        start + found.unwrap_or_default()
    })
}

fn block_inside<I: Index>(block: &[I], limit: usize) -> bool {
    let (mut low, mut high) = (block[0], block[0]);
    for &index in block {
        low = low.min(index);
        high = high.max(index);
    }
    low.below(limit).is_some() && high.below(limit).is_some()
}

/// The position of element `flat` of a tensor as errors print it: `[2,0]`, or nothing for a scalar.
pub(crate) fn place(shape: &[usize], flat: usize) -> String {
    let mut parts = vec![0; shape.len()];
    let mut left = flat;
    for (axis, part) in parts.iter_mut().enumerate().rev() {
        let dim = shape[axis].max(1);
        *part = if axis == 0 { left } else { left % dim };
        left /= dim;
    }
    if parts.is_empty() { String::new() } else { format!("[{}]", joined(&parts, ",")) }
}

/// Values one after the other.
pub(crate) fn joined<T: Display>(values: &[T], separator: &str) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(separator)
}

/// The integer in a scalar; `wrong` makes the error for anything else.
pub(crate) fn integer(tensor: &Tensor, wrong: impl FnOnce() -> status::Error) -> Result<i64> {
    if tensor.shape().rank() != 0 {
        return Err(wrong());
    }
    match tensor.dtype() {
        DType::I32 => tensor.to_scalar::<i32>().map(i64::from),
        DType::I64 => tensor.to_scalar::<i64>(),
        DType::I16 => tensor.to_scalar::<i16>().map(i64::from),
        other => Err(invalid!("Expected an integer, got a value of type {other}")),
    }
}

/// The largest value of an index type.
pub(crate) fn largest(dtype: DType) -> i64 {
    match dtype {
        DType::I16 => i16::MAX.into(),
        DType::U16 => u16::MAX.into(),
        DType::I32 => i32::MAX.into(),
        _ => i64::MAX,
    }
}

/// The product of some dimensions of a tensor that exists, so that it cannot overflow unless another dimension is zero.
pub(crate) fn product(dims: &[usize]) -> usize {
    dims.iter().fold(1, |product: usize, &dim| product.saturating_mul(dim))
}

/// A shape out of parts of others; an error if no tensor can have it.
pub(crate) fn shape_of(parts: &[&[usize]]) -> Result<Shape> {
    let shape: Shape = parts.iter().flat_map(|part| part.iter().copied()).collect();
    if shape.rank() > Shape::MAX_RANK {
        return Err(invalid!("Shape has {} dimensions, which is over the limit of {}", shape.rank(), Shape::MAX_RANK));
    }
    shape.checked_elements()?;
    Ok(shape)
}

/// Places as a tensor of an index type, which holds them all.
pub(crate) fn from_places(places: &[usize], shape: impl Into<Shape>, dtype: DType) -> Result<Tensor> {
    fn filled<T: Element>(places: &[usize], shape: Shape, convert: fn(usize) -> T) -> Result<Tensor> {
        let mut tensor = Tensor::scratch::<T>(shape)?;
        let values = tensor.values_mut::<T>()?;
        values.iter_mut().zip(places).for_each(|(value, &place)| *value = convert(place));
        Ok(tensor)
    }
    match dtype {
        DType::I16 => filled(places, shape.into(), |place| place as i16),
        DType::I32 => filled(places, shape.into(), |place| place as i32),
        _ => filled(places, shape.into(), |place| place as i64),
    }
}

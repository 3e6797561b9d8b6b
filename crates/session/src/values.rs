//! Reads the fetched values of a step as the types that the caller names.

use status::{Result, invalid};
use std::collections::VecDeque;
use tensor::{Bytes, Complex32, Complex64, Element, Tensor, bf16, f16};

/// The values of a step, in the order of the fetches, with none for nodes that only ran.
pub struct Values(pub(crate) VecDeque<Option<Tensor>>);

impl Values {
    /// The next value.
    pub fn take<T: FromTensor>(&mut self) -> Result<T> {
        match self.0.pop_front().flatten() {
            Some(tensor) => T::from_tensor(tensor),
            None => T::from_nothing(),
        }
    }
}

/// A type that a fetched value can be read as.
pub trait FromTensor: Sized {
    /// Reads a tensor; an error if it has another element type or shape.
    fn from_tensor(tensor: Tensor) -> Result<Self>;

    /// The result for a node without a value.
    fn from_nothing() -> Result<Self> {
        Err(invalid!("A node that only runs was fetched as a value; fetch it as ()"))
    }
}

impl FromTensor for Tensor {
    fn from_tensor(tensor: Tensor) -> Result<Tensor> {
        Ok(tensor)
    }
}

impl FromTensor for () {
    fn from_tensor(_: Tensor) -> Result<()> {
        Ok(())
    }

    fn from_nothing() -> Result<()> {
        Ok(())
    }
}

impl FromTensor for String {
    fn from_tensor(tensor: Tensor) -> Result<String> {
        text(&tensor.to_string_scalar()?)
    }
}

impl FromTensor for Vec<String> {
    fn from_tensor(tensor: Tensor) -> Result<Vec<String>> {
        tensor.strings()?.iter().map(text).collect()
    }
}

impl FromTensor for Vec<Bytes> {
    fn from_tensor(tensor: Tensor) -> Result<Vec<Bytes>> {
        Ok(tensor.strings()?.to_vec())
    }
}

fn text(bytes: &Bytes) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| invalid!("A fetched string is not UTF-8; fetch it as Vec<Bytes>"))
}

fn elements<T: Element, const N: usize>(tensor: &Tensor, rank: usize) -> Result<Vec<[T; N]>> {
    let dims = tensor.shape().dims();
    if dims.len() != rank || dims.last() != Some(&N) {
        return Err(invalid!("A tensor of shape {} was fetched as rows of {N}", tensor.shape()));
    }
    let rows = tensor.values::<T>()?.chunks_exact(N.max(1));
    Ok(rows.map(|row| std::array::from_fn(|i| row[i])).collect())
}

macro_rules! numbers {
    ($($T:ty),*) => {$(
        impl FromTensor for $T {
            fn from_tensor(tensor: Tensor) -> Result<$T> {
                tensor.to_scalar()
            }
        }

        /// All elements, row-major.
        impl FromTensor for Vec<$T> {
            fn from_tensor(tensor: Tensor) -> Result<Vec<$T>> {
                Ok(tensor.values::<$T>()?.to_vec())
            }
        }

        impl<const N: usize> FromTensor for [$T; N] {
            fn from_tensor(tensor: Tensor) -> Result<[$T; N]> {
                let rows = elements::<$T, N>(&tensor, 1)?;
                rows.first().copied().ok_or_else(|| invalid!("An empty tensor was fetched as {N} numbers"))
            }
        }

        impl<const N: usize> FromTensor for Vec<[$T; N]> {
            fn from_tensor(tensor: Tensor) -> Result<Vec<[$T; N]>> {
                elements(&tensor, 2)
            }
        }
    )*};
}

numbers!(f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, Complex32, Complex64);

//! Conversions from plain Rust values to tensors: numbers, nested arrays, vectors and strings.

use crate::{Bytes, Element, Tensor};

impl<T: Element> From<T> for Tensor {
    fn from(value: T) -> Tensor {
        Tensor::scalar(value)
    }
}

impl<T: Element> From<&[T]> for Tensor {
    fn from(values: &[T]) -> Tensor {
        Tensor::vector(values)
    }
}

impl<T: Element> From<Vec<T>> for Tensor {
    fn from(values: Vec<T>) -> Tensor {
        Tensor::vector(&values)
    }
}

impl<T: Element, const N: usize> From<Vec<[T; N]>> for Tensor {
    fn from(rows: Vec<[T; N]>) -> Tensor {
        Tensor::from_slice([rows.len(), N], rows.as_flattened()).expect("the values are already in memory")
    }
}

impl<T: Element, const N: usize> From<[T; N]> for Tensor {
    fn from(values: [T; N]) -> Tensor {
        Tensor::vector(&values)
    }
}

impl<T: Element, const N: usize, const M: usize> From<[[T; N]; M]> for Tensor {
    fn from(values: [[T; N]; M]) -> Tensor {
        Tensor::from_slice([M, N], values.as_flattened()).expect("the values are already in memory")
    }
}

impl<T: Element, const N: usize, const M: usize, const L: usize> From<[[[T; N]; M]; L]> for Tensor {
    fn from(values: [[[T; N]; M]; L]) -> Tensor {
        Tensor::from_slice([L, M, N], values.as_flattened().as_flattened()).expect("the values are already in memory")
    }
}

impl From<&Tensor> for Tensor {
    fn from(tensor: &Tensor) -> Tensor {
        tensor.clone()
    }
}

impl From<&str> for Tensor {
    fn from(text: &str) -> Tensor {
        Tensor::string(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Tensor {
    fn from(text: String) -> Tensor {
        Tensor::string(text)
    }
}

impl<const N: usize> From<[&str; N]> for Tensor {
    fn from(texts: [&str; N]) -> Tensor {
        Tensor::from(texts.map(str::to_string).to_vec())
    }
}

impl From<Vec<String>> for Tensor {
    fn from(texts: Vec<String>) -> Tensor {
        let count = texts.len();
        let texts = texts.into_iter().map(Bytes::from).collect();
        Tensor::from_strings([count], texts).expect("there are as many texts as the shape says")
    }
}

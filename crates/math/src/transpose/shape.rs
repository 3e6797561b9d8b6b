//! A new order of axes, with neighbours that stay neighbours made one.

/// A permutation of the axes of a shape.
///
/// Invariant: `dims` are sizes of the result, `strides` are those of the source along the same axes, both not empty; no
/// size is one unless there is only one axis.
#[derive(Clone, Debug)]
pub struct Permutation {
    dims: Vec<usize>,
    strides: Vec<usize>,
}

impl Permutation {
    /// Axis `i` of the result is axis `order[i]` of `dims`.
    pub fn new(dims: &[usize], order: &[usize]) -> Permutation {
        assert_eq!(dims.len(), order.len(), "permutation: axes");
        let mut strides = vec![1; dims.len()];
        for axis in (1..dims.len()).rev() {
            strides[axis - 1] = strides[axis] * dims[axis];
        }
        let mut result = Permutation { dims: Vec::new(), strides: Vec::new() };
        for &axis in order.iter().filter(|axis| dims[**axis] != 1) {
            result.push(dims[axis], strides[axis]);
        }
        if result.dims.is_empty() {
            result.push(1, 1);
        }
        result
    }

    /// Adds an axis, or lengthens the last one when the source runs on.
    fn push(&mut self, dim: usize, stride: usize) {
        match self.strides.last_mut() {
            Some(last) if *last == dim * stride => {
                *last = stride;
                *self.dims.last_mut().unwrap() *= dim;
            }
            _ => {
                self.dims.push(dim);
                self.strides.push(stride);
            }
        }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length of the innermost axis of the result if it is the innermost axis of the source too.
    pub(super) fn inner_run(&self) -> Option<usize> {
        let last = self.dims.len() - 1;
        (self.strides[last] == 1).then_some(self.dims[last])
    }

    pub(super) fn dims(&self) -> &[usize] {
        &self.dims
    }

    pub(super) fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// The strides of the result.
    pub(super) fn out_strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.dims.len()];
        for axis in (1..self.dims.len()).rev() {
            strides[axis - 1] = strides[axis] * self.dims[axis];
        }
        strides
    }

    /// Where in the source the result's element `index` is.
    pub(super) fn source(&self, mut index: usize) -> usize {
        let mut at = 0;
        for (&dim, &stride) in self.dims.iter().zip(&self.strides).rev() {
            at += index % dim * stride;
            index /= dim;
        }
        at
    }

    /// A walk through the result from element `start` on.
    pub(super) fn walk(&self, mut start: usize) -> Walk<'_> {
        let at = self.source(start);
        let mut index = vec![0; self.dims.len()];
        for (index, &dim) in index.iter_mut().zip(&self.dims).rev() {
            *index = start % dim;
            start /= dim;
        }
        Walk { permutation: self, index, at }
    }
}

/// A place in the result and its source.
pub(super) struct Walk<'a> {
    permutation: &'a Permutation,
    index: Vec<usize>,
    at: usize,
}

impl Walk<'_> {
    /// Where in the source.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Goes on to the next run of the innermost axis.
    #[inline]
    pub(super) fn advance_run(&mut self) {
        let Permutation { dims, strides } = self.permutation;
        for axis in (0..dims.len() - 1).rev() {
            self.index[axis] += 1;
            self.at += strides[axis];
            if self.index[axis] < dims[axis] {
                return;
            }
            self.at -= strides[axis] * dims[axis];
            self.index[axis] = 0;
        }
    }
}

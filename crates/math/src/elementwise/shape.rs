//! How operands of different shapes meet: axes of size one are repeated.

use std::ops::Range;

/// The common shape of `N` operands, with neighbouring axes that behave alike made one.
///
/// Invariant: `dims` is not empty, its product is that of `out_dims`, and an operand's stride on the last of `dims` is
/// zero or one.
#[derive(Clone, Debug)]
pub struct Broadcast<const N: usize = 2> {
    out_dims: Vec<usize>,
    dims: Vec<usize>,
    strides: Vec<[usize; N]>,
    lens: [usize; N],
}

impl Broadcast<2> {
    /// The common shape of two operands, or nothing when they have none.
    pub fn new(lhs_dims: &[usize], rhs_dims: &[usize]) -> Option<Broadcast> {
        Broadcast::of([lhs_dims, rhs_dims])
    }
}

impl<const N: usize> Broadcast<N> {
    /// The common shape of all operands, or nothing when they have none.
    pub fn of(operands: [&[usize]; N]) -> Option<Broadcast<N>> {
        let rank = operands.iter().map(|dims| dims.len()).max().unwrap_or(0);
        let mut out_dims = vec![1; rank];
        for dims in operands {
            for (out, &dim) in out_dims[rank - dims.len()..].iter_mut().zip(dims) {
                match (*out, dim) {
                    (_, 1) => {}
                    (1, _) => *out = dim,
                    (a, b) if a == b => {}
                    _ => return None,
                }
            }
        }
        Some(Broadcast::collapsed(out_dims, operands))
    }

    fn collapsed(out_dims: Vec<usize>, operands: [&[usize]; N]) -> Broadcast<N> {
        let (mut dims, mut strides) = (Vec::<usize>::new(), Vec::new());
        let mut steps = [1; N];
        let mut last = None;
        for (back, &dim) in out_dims.iter().rev().enumerate().filter(|(_, dim)| **dim != 1) {
            let present = operands.map(|of| of.len() > back && of[of.len() - 1 - back] != 1);
            if last == Some(present) {
                dims[0] *= dim;
            } else {
                dims.insert(0, dim);
                strides.insert(0, std::array::from_fn(|i| if present[i] { steps[i] } else { 0 }));
            }
            last = Some(present);
            for i in (0..N).filter(|&i| present[i]) {
                steps[i] *= dim;
            }
        }
        if dims.is_empty() {
            (dims, strides) = (vec![1], vec![[1; N]]);
        }
        Broadcast { out_dims, dims, strides, lens: operands.map(|of| of.iter().product()) }
    }

    /// The shape of the result.
    pub fn out_dims(&self) -> &[usize] {
        &self.out_dims
    }

    /// How many elements the result has.
    pub fn out_len(&self) -> usize {
        self.dims.iter().product()
    }

    /// How many elements operand `i` has.
    pub fn operand_len(&self, i: usize) -> usize {
        self.lens[i]
    }

    /// Whether operand `i` has the shape of the result, up to axes of size one.
    pub fn is_whole(&self, i: usize) -> bool {
        self.strides.iter().all(|strides| strides[i] != 0)
    }

    /// The width of the rows if one operand is a matrix of short rows and the other, of number `side`, one such row.
    pub(super) fn short_row(&self, side: usize) -> Option<usize> {
        let [rows, width] = self.dims[..] else { return None };
        let repeats = self.strides[0][side] == 0 && self.strides[1].iter().all(|stride| *stride == 1);
        (repeats && width < 64 && rows >= 64).then_some(width)
    }

    /// Whether the operands advance along the last axis.
    pub(crate) fn advances(&self) -> [bool; N] {
        self.strides[self.strides.len() - 1].map(|stride| stride != 0)
    }

    /// The length of the last axis.
    pub(crate) fn inner_len(&self) -> usize {
        self.dims[self.dims.len() - 1]
    }

    /// Visits the elements of `range`, counted in the result, as segments along the last axis.
    #[inline(always)]
    pub(crate) fn walk(&self, range: Range<usize>, visitor: &mut impl Visit<N>) {
        if range.is_empty() {
            return;
        }
        let last = self.dims.len() - 1;
        let (inner, advances) = (self.dims[last], self.advances());
        let mut index = vec![0; last];
        let mut column = range.start % inner;
        let mut at = self.locate(range.start / inner, &mut index);
        let mut done = range.start;
        while done < range.end {
            let len = (inner - column).min(range.end - done);
            let from = std::array::from_fn(|i| at[i] + if advances[i] { column } else { 0 });
            visitor.segment(done - range.start, len, from);
            done += len;
            column = 0;
            self.advance(&mut index, &mut at);
        }
    }

    /// Sets `index` to that of the given row and answers where the operands stand there.
    fn locate(&self, mut row: usize, index: &mut [usize]) -> [usize; N] {
        let mut at = [0; N];
        for axis in (0..index.len()).rev() {
            index[axis] = row % self.dims[axis];
            row /= self.dims[axis];
            for (at, stride) in at.iter_mut().zip(self.strides[axis]) {
                *at += index[axis] * stride;
            }
        }
        at
    }

    #[inline(always)]
    fn advance(&self, index: &mut [usize], at: &mut [usize; N]) {
        for axis in (0..index.len()).rev() {
            index[axis] += 1;
            if index[axis] < self.dims[axis] {
                for (at, stride) in at.iter_mut().zip(self.strides[axis]) {
                    *at += stride;
                }
                return;
            }
            index[axis] = 0;
            for (at, stride) in at.iter_mut().zip(self.strides[axis]) {
                *at -= stride * (self.dims[axis] - 1);
            }
        }
    }
}

/// What is done to a run of elements of the result.
pub(crate) trait Visit<const N: usize> {
    /// The `len` results from `start` on, counted from the start of the range walked; operand `i` begins at `from[i]`
    /// and advances with the result, or stands still.
    fn segment(&mut self, start: usize, len: usize, from: [usize; N]);
}

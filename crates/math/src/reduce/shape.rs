//! Which axes are kept and which are reduced, with neighbours of one kind made one.

/// A shape split into kept and reduced axes.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// Sizes and strides of the kept axes, without the innermost axis of all.
    kept: Vec<(usize, usize)>,
    /// Sizes and strides of the reduced axes, without the innermost axis of all.
    reduced: Vec<(usize, usize)>,
    /// The size of the innermost axis, whose stride is one.
    inner: usize,
    inner_is_reduced: bool,
}

impl Reduction {
    /// Reduces the axes of `dims` for which `reduced` is true.
    pub fn new(dims: &[usize], reduced: &[bool]) -> Reduction {
        assert_eq!(dims.len(), reduced.len(), "reduce: axes and flags");
        let mut runs: Vec<(usize, bool)> = Vec::new();
        for (&dim, &flag) in dims.iter().zip(reduced).filter(|(dim, _)| **dim != 1) {
            match runs.last_mut() {
                Some((size, last)) if *last == flag => *size *= dim,
                _ => runs.push((dim, flag)),
            }
        }
        let (inner, inner_is_reduced) = runs.pop().unwrap_or((1, false));
        let mut shape = Reduction { kept: Vec::new(), reduced: Vec::new(), inner, inner_is_reduced };
        let mut stride = inner;
        for (size, flag) in runs.into_iter().rev() {
            (if flag { &mut shape.reduced } else { &mut shape.kept }).insert(0, (size, stride));
            stride *= size;
        }
        shape
    }

    /// How many elements go in.
    pub fn in_len(&self) -> usize {
        self.outer() * self.rows() * self.inner
    }

    /// How many results there are.
    pub fn out_len(&self) -> usize {
        self.outer() * if self.inner_is_reduced { 1 } else { self.inner }
    }

    /// How many elements make one result.
    pub fn count(&self) -> usize {
        self.rows() * if self.inner_is_reduced { self.inner } else { 1 }
    }

    pub(super) fn inner(&self) -> usize {
        self.inner
    }

    pub(super) fn inner_is_reduced(&self) -> bool {
        self.inner_is_reduced
    }

    /// Combinations of kept axes, the innermost axis aside.
    pub(super) fn outer(&self) -> usize {
        self.kept.iter().map(|axis| axis.0).product()
    }

    /// Combinations of reduced axes, the innermost axis aside.
    pub(super) fn rows(&self) -> usize {
        self.reduced.iter().map(|axis| axis.0).product()
    }

    /// Where the given combination of kept axes begins.
    pub(super) fn outer_offset(&self, index: usize) -> usize {
        offset(&self.kept, index)
    }

    /// How far the given combination of reduced axes is from the first.
    #[inline(always)]
    pub(super) fn row_offset(&self, index: usize) -> usize {
        match self.reduced[..] {
            [(_, stride)] => index * stride,
            _ => offset(&self.reduced, index),
        }
    }
}

fn offset(axes: &[(usize, usize)], mut index: usize) -> usize {
    let mut sum = 0;
    for &(size, stride) in axes.iter().rev() {
        sum += index % size * stride;
        index /= size;
    }
    sum
}

//! Windows that slide over the elements of a dataset.

use status::{Result, invalid};

/// How windows slide: each begins `shift` elements after the one before, and takes every `stride`-th element.
#[derive(Clone, Debug)]
pub(crate) struct Slide {
    /// The number of elements in a window; positive, as are the next two.
    pub size: u64,
    /// The distance of the beginnings of windows.
    pub shift: u64,
    /// The distance of the elements in a window.
    pub stride: u64,
    /// Leaves out windows that have fewer elements, at the end.
    pub drops_remainder: bool,
}

impl Slide {
    /// The number of elements from the first to the last of a window.
    pub(crate) fn span(&self) -> u64 {
        (self.size - 1).saturating_mul(self.stride).saturating_add(1)
    }

    /// The distance of the elements in a window, for `step_by`.
    pub(crate) fn step(&self) -> usize {
        usize::try_from(self.stride).unwrap_or(usize::MAX)
    }

    /// The number of windows over `count` elements.
    pub(crate) fn windows(&self, count: u64) -> u64 {
        match count.checked_sub(self.span()) {
            Some(rest) if self.drops_remainder => rest / self.shift + 1,
            None if self.drops_remainder => 0,
            _ => count.div_ceil(self.shift),
        }
    }
}

/// A positive number; errors call it `name`.
pub(crate) fn positive(value: i64, name: &str) -> Result<u64> {
    let found = u64::try_from(value).ok().filter(|&value| value > 0);
    found.ok_or_else(|| invalid!("{name} must be greater than zero."))
}

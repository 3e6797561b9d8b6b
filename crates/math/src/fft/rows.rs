//! Rows of a tensor that is cropped, or padded with zeros.

use super::Real;
use crate::Pool;
use crate::parallel::split_rows_mut;
use num_complex::Complex;

/// The rows of a tensor, and of the tensor it is cropped or padded to. Both have the same rank.
#[derive(Debug)]
pub struct Rows {
    from: Vec<usize>,
    to: Vec<usize>,
}

impl Rows {
    /// Rows of tensors with these dimensions, of which the last is the length of a row.
    pub fn new(from: &[usize], to: &[usize]) -> Rows {
        assert_eq!(from.len(), to.len(), "Rows: tensors of ranks {} and {}", from.len(), to.len());
        let outer = from.len().saturating_sub(1);
        Rows { from: from[..outer].to_vec(), to: to[..outer].to_vec() }
    }

    /// The row of the source that becomes row `row` of the result; none for padding.
    #[inline]
    pub(super) fn source(&self, row: usize) -> Option<usize> {
        if self.from == self.to {
            return Some(row);
        }
        let (mut left, mut source, mut stride) = (row, 0, 1);
        for (&from, &to) in self.from.iter().zip(&self.to).rev() {
            let place = left % to;
            if place >= from {
                return None;
            }
            source += place * stride;
            left /= to;
            stride *= from;
        }
        Some(source)
    }
}

/// Copies `from` into `to`, cropped or padded with zeros: the rows as `rows` says, of `widths` before and after.
pub fn fit<T: Real>(pool: &Pool, rows: &Rows, widths: [usize; 2], from: &[Complex<T>], to: &mut [Complex<T>]) {
    if to.is_empty() {
        return;
    }
    split_rows_mut(pool, widths[1] as f32, to, widths[1], |first, chunk| {
        for (row, to) in chunk.chunks_exact_mut(widths[1]).enumerate() {
            fit_row(rows.source(first + row).map(|row| &from[row * widths[0]..][..widths[0]]), to);
        }
    });
}

/// Copies a row, cropped or padded with zeros.
pub(super) fn fit_row<V: Copy + Default>(from: Option<&[V]>, to: &mut [V]) {
    let from = from.unwrap_or_default();
    let common = from.len().min(to.len());
    to[..common].copy_from_slice(&from[..common]);
    to[common..].fill(V::default());
}

//! Matrix products of strided matrices into a row-major result.

mod blocked;
mod element;
pub(crate) mod kernel;
pub(crate) mod pack;
pub(crate) mod scratch;
mod thin;
mod vector;

pub use element::Element;
pub(crate) use element::Real;

use crate::Pool;

/// A matrix that lies in a slice by strides, so that a transpose is other strides.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, T> {
    /// All numbers; the first is at row 0, column 0.
    pub values: &'a [T],
    /// How many rows.
    pub rows: usize,
    /// How many columns.
    pub cols: usize,
    /// From one row to the next.
    pub row_stride: usize,
    /// From one column to the next.
    pub col_stride: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// A matrix whose rows lie one after the other.
    pub fn new(values: &'a [T], rows: usize, cols: usize) -> Matrix<'a, T> {
        Matrix { values, rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// The same numbers with rows and columns exchanged.
    pub fn transposed(self) -> Matrix<'a, T> {
        Matrix { rows: self.cols, cols: self.rows, row_stride: self.col_stride, col_stride: self.row_stride, ..self }
    }

    /// The matrix of the same form that begins `offset` numbers later.
    pub fn starting_at(self, offset: usize) -> Matrix<'a, T> {
        Matrix { values: &self.values[offset..], ..self }
    }

    /// The same matrix without its first rows; the caller sets how many remain.
    fn after_rows(self, row: usize) -> Matrix<'a, T> {
        // A matrix of no columns may have an empty slice.
        let start = (row * self.row_stride).min(self.values.len());
        Matrix { values: &self.values[start..], ..self }
    }

    fn row(&self, row: usize) -> &'a [T] {
        let start = row * self.row_stride;
        &self.values[start..start + self.cols]
    }

    /// How many numbers the matrix reaches over, if that can be counted.
    fn reach(&self) -> Option<usize> {
        if self.rows == 0 || self.cols == 0 {
            return Some(0);
        }
        let down = (self.rows - 1).checked_mul(self.row_stride)?;
        let across = (self.cols - 1).checked_mul(self.col_stride)?;
        down.checked_add(across)?.checked_add(1)
    }

    fn fits(&self) -> bool {
        self.reach().is_some_and(|reach| reach <= self.values.len())
    }
}

/// What happens to each number of a product while it is still in a register.
#[derive(Clone, Copy, Debug)]
pub struct Epilogue<'a, T> {
    /// Numbers to add, one per column.
    pub bias: Option<&'a [T]>,
    /// Whether negative results become zero, after the bias.
    pub relu: bool,
}

impl<'a, T> Epilogue<'a, T> {
    /// Results are stored as they are.
    pub const NONE: Epilogue<'a, T> = Epilogue { bias: None, relu: false };
}

/// `out = lhs rhs`, row-major.
///
/// # Panics
/// If the sizes are inconsistent with each other or with the slices.
pub fn matmul<T: Element>(pool: &Pool, lhs: Matrix<'_, T>, rhs: Matrix<'_, T>, out: &mut [T]) {
    matmul_with(pool, lhs, rhs, Epilogue::NONE, out);
}

/// `out = epilogue(lhs rhs)`, row-major.
///
/// # Panics
/// If the sizes are inconsistent with each other or with the slices.
pub fn matmul_with<T: Element>(
    pool: &Pool,
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    epilogue: Epilogue<'_, T>,
    out: &mut [T],
) {
    assert_eq!(lhs.cols, rhs.rows, "columns of the left matrix and rows of the right one differ");
    assert!(lhs.fits(), "left matrix reaches beyond its slice");
    assert!(rhs.fits(), "right matrix reaches beyond its slice");
    assert_eq!(Some(out.len()), lhs.rows.checked_mul(rhs.cols), "result of a product has the wrong size");
    assert!(epilogue.bias.is_none_or(|bias| bias.len() == rhs.cols), "bias needs one number per column");
    if !out.is_empty() {
        T::product(pool, lhs, rhs, epilogue, out);
    }
}

/// Products of equally large matrices: the n-th block of `out` is the product of those that begin at
/// `offsets[n].0` in `lhs` and at `offsets[n].1` in `rhs`.
///
/// # Panics
/// If the sizes are inconsistent with each other or with the slices.
pub fn matmul_batch<T: Element>(
    pool: &Pool,
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    offsets: &[(usize, usize)],
    out: &mut [T],
) {
    let size = lhs.rows.checked_mul(rhs.cols).expect("result of a product is too large");
    assert_eq!(Some(out.len()), size.checked_mul(offsets.len()), "result of a batch has the wrong size");
    if size == 0 {
        return;
    }
    let each = |pool: &Pool, i: usize, out: &mut [T]| {
        matmul(pool, lhs.starting_at(offsets[i].0), rhs.starting_at(offsets[i].1), out);
    };
    // Few large products are split inside, many small ones are dealt out whole.
    if offsets.len() < 2 * pool.threads() {
        out.chunks_exact_mut(size).enumerate().for_each(|(i, out)| each(pool, i, out));
        return;
    }
    let alone = Pool::new(1);
    let group = offsets.len().div_ceil(8 * pool.threads());
    let blocks = Span::new(out);
    pool.run(offsets.len().div_ceil(group), &|chunk| {
        for i in chunk * group..((chunk + 1) * group).min(offsets.len()) {
            // SAFETY: each block of `out` belongs to one product, each product to one chunk.
            each(&alone, i, unsafe { blocks.slice(i * size, size) });
        }
    });
}

/// A mutable slice that several threads write at places they have agreed on.
pub(crate) struct Span<T> {
    start: *mut T,
    len: usize,
}

impl<T> Clone for Span<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Span<T> {}

// SAFETY: a span is a pointer and a length; every dereference states its own reason why the access is exclusive.
unsafe impl<T: Send> Send for Span<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Span<T> {}

impl<T> Span<T> {
    pub fn new(values: &mut [T]) -> Span<T> {
        Span { start: values.as_mut_ptr(), len: values.len() }
    }

    /// The address of the number at `offset`, which must be inside.
    pub fn at(&self, offset: usize) -> *mut T {
        assert!(offset < self.len, "write beyond the result of a product");
        self.start.wrapping_add(offset)
    }

    /// The part from `offset` on.
    pub fn from(&self, offset: usize) -> Span<T> {
        assert!(offset <= self.len, "write beyond the result of a product");
        Span { start: self.start.wrapping_add(offset), len: self.len - offset }
    }

    /// `len` numbers from `offset` on.
    ///
    /// # Safety
    /// The slice the span was made from is still alive, and no other thread accesses these numbers meanwhile.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice<'a>(&self, offset: usize, len: usize) -> &'a mut [T] {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "slice beyond the result");
        // SAFETY: inside the span as just asserted; the rest is promised by the caller.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(offset), len) }
    }
}

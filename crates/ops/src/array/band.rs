//! Diagonals of a matrix, packed as rows: the start, length and alignment of each.

use op::Setup;
use status::{Result, invalid};
use tensor::Tensor;

/// Which side short diagonals are pushed to in their row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Align {
    left_above: bool,
    left_below: bool,
}

impl Align {
    /// Reads the attribute; without it, both sides are aligned left.
    pub(super) fn of(setup: &Setup<'_>) -> Result<Align> {
        let text = match setup.find("align") {
            Some(_) => setup.string("align")?,
            None => "LEFT_LEFT".to_string(),
        };
        Ok(Align { left_above: text.starts_with("LEFT"), left_below: text.ends_with("LEFT") })
    }
}

/// Diagonals `lower ..= upper` of a matrix: 0 is the main one, positive ones lie above it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub lower: i64,
    pub upper: i64,
}

impl Range {
    /// The main diagonal.
    pub(super) const MAIN: Range = Range { lower: 0, upper: 0 };

    /// The diagonals in a tensor with one number, or with the lowest and the highest.
    pub(super) fn of(k: &Tensor) -> Result<Range> {
        if k.shape().rank() > 1 {
            return Err(invalid!("diag_index must be a scalar or vector, received shape: {}", k.shape()));
        }
        match *k.values::<i32>()? {
            [] => Err(invalid!("Expected diag_index to have at least 1 element")),
            [k] => Ok(Range { lower: k.into(), upper: k.into() }),
            [lower, upper] => Ok(Range { lower: lower.into(), upper: upper.into() }),
            ref more => {
                Err(invalid!("diag_index must have only one or two elements, received {} elements.", more.len()))
            }
        }
    }

    /// How many diagonals; not positive if the ends are the wrong way round.
    pub(super) fn count(self) -> i64 {
        self.upper - self.lower + 1
    }

    /// An error unless both ends lie in a matrix of this size, in order; `stop` is how its first sentence ends.
    pub(super) fn check(self, rows: usize, cols: usize, stop: &str) -> Result<()> {
        let (rows, cols) = (rows as i64, cols as i64);
        let inside = |index: i64| (-rows < index && index < cols) || index == 0;
        if !inside(self.lower) {
            return Err(invalid!(
                "lower_diag_index is out of bound: {}{} It must be between {} and {cols}",
                self.lower,
                stop,
                -rows
            ));
        }
        if !inside(self.upper) {
            return Err(invalid!(
                "upper_diag_index is out of bound: {} It must be between {} and {cols}",
                self.upper,
                -rows
            ));
        }
        self.check_order()
    }

    /// An error unless the ends are in order.
    pub(super) fn check_order(self) -> Result<()> {
        if self.lower > self.upper {
            return Err(invalid!(
                "lower_diag_index must not be larger than upper_diag_index: {} > {}",
                self.lower,
                self.upper
            ));
        }
        Ok(())
    }
}

/// Diagonals of a matrix of known size, packed into rows as long as the longest of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Band {
    pub rows: usize,
    pub cols: usize,
    pub range: Range,
    pub longest: usize,
    pub align: Align,
}

/// One diagonal: its elements are `len` apart by `stride` from `start` in the matrix, and lie from `packed` on in the packed form.
pub(super) struct Diagonal {
    pub start: usize,
    pub stride: usize,
    pub len: usize,
    /// The start of its row in the packed form.
    pub row: usize,
    /// The start of its elements in that row.
    pub offset: usize,
}

impl Band {
    /// A band of an existing matrix; its range was checked.
    pub(super) fn of(rows: usize, cols: usize, range: Range, align: Align) -> Band {
        let longest = (rows as i64 + range.upper.min(0)).min(cols as i64 - range.lower.max(0));
        Band { rows, cols, range, longest: longest.max(0) as usize, align }
    }

    /// Elements of the packed form.
    pub(super) fn packed(&self) -> usize {
        self.range.count() as usize * self.longest
    }

    /// The diagonals, from the highest to the lowest.
    pub(super) fn diagonals(&self) -> impl Iterator<Item = Diagonal> + '_ {
        (0..self.range.count()).map(|number| {
            let index = self.range.upper - number;
            let (down, right) = ((-index).max(0) as usize, index.max(0) as usize);
            let len = self.rows.saturating_sub(down).min(self.cols.saturating_sub(right)).min(self.longest);
            let left = (index >= 0 && self.align.left_above) || (index <= 0 && self.align.left_below);
            Diagonal {
                start: down.saturating_mul(self.cols).saturating_add(right),
                stride: self.cols + 1,
                len,
                row: number as usize * self.longest,
                offset: if left { 0 } else { self.longest - len },
            }
        })
    }
}

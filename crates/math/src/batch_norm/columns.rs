//! How rows of channels are cut for sums over them: several rows side by side make a wide one, some wide ones a block.

/// Columns that are summed side by side: four vectors.
pub const LANES: usize = 32;
/// Columns that remain are summed by one vector.
pub const FEW: usize = 8;

/// The cut of rows of channels.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// Columns of a wide row: a multiple of `FEW`, and of the channels.
    pub width: usize,
    /// How many wide rows there are.
    pub wide_rows: usize,
    /// How many wide rows make a block, which stays in cache.
    pub block: usize,
}

impl Columns {
    /// The cut of `len` elements; those beyond the last wide row are left over.
    pub fn new(len: usize, depth: usize) -> Columns {
        let together = FEW / gcd(depth, FEW);
        let width = depth * together;
        Columns { width, wide_rows: len / width, block: (8192 / width).max(32) }
    }

    /// Into how many parts the wide rows are dealt to the threads: by their number alone, so that results do not
    /// depend on how many threads there are.
    pub fn parts(&self) -> usize {
        (self.wide_rows / self.block).clamp(1, 32)
    }

    /// The wide rows of a part.
    pub fn part(&self, number: usize) -> std::ops::Range<usize> {
        let parts = self.parts();
        self.wide_rows * number / parts..self.wide_rows * (number + 1) / parts
    }

    /// The wide rows of a part, block by block.
    pub fn blocks(&self, number: usize) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let (part, block) = (self.part(number), self.block);
        part.clone().step_by(block).map(move |start| start..(start + block).min(part.end))
    }

    /// The first element that is left over.
    pub fn rest(&self) -> usize {
        self.wide_rows * self.width
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

//! The innermost loops: a few rows times one panel of columns, with all sums in registers.
//!
//! The left side is given by one pointer per row, a step, and a list of offsets at which runs of products
//! begin. So the same loop multiplies packed strips, strided matrices, and windows of an image.

use super::Real;
use super::pack::prefetch;
use super::vector::{Plain, Vector};

/// Rows of the tallest tile.
pub(crate) const ROWS: usize = 6;
/// Columns of the widest panel.
const WIDEST: usize = 32;

/// What happens to a sum before it is stored for the last time.
pub(crate) struct Finish<T> {
    /// Numbers to add, one per column of the tile; null for none. Readable for `cols` numbers.
    pub bias: *const T,
    /// Whether negative sums become zero.
    pub relu: bool,
}

impl<T> Clone for Finish<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Finish<T> {}

// SAFETY: the bias outlives the product it finishes and is only read.
unsafe impl<T: Sync> Send for Finish<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Finish<T> {}

impl<T> Finish<T> {
    /// Sums are stored as they are.
    pub const NONE: Finish<T> = Finish { bias: std::ptr::null(), relu: false };

    /// The same for the columns from `col` on.
    pub fn after_cols(self, col: usize) -> Finish<T> {
        if self.bias.is_null() { self } else { Finish { bias: self.bias.wrapping_add(col), ..self } }
    }
}

/// One call of a micro-kernel: `out[r][c] (+)= Σ rows[r][offset + i * step] * rhs[position][c]`.
pub(crate) struct Tile<'a, T> {
    /// Where the rows of the left side begin.
    pub rows: [*const T; ROWS],
    /// From one factor of a row to the next.
    pub step: usize,
    /// Where each run of factors begins, relative to the row's pointer.
    pub segments: &'a [usize],
    /// Factors in a run.
    pub run: usize,
    /// The right side, a panel of `T::PANEL` columns (zeros beyond `cols`), run after run.
    pub rhs: *const T,
    /// From one row of the panel to the next.
    pub rhs_step: usize,
    /// The first number of the result.
    pub out: *mut T,
    /// From one row of the result to the next.
    pub out_stride: usize,
    /// How many columns are stored.
    pub cols: usize,
    /// Whether the sums are added to what `out` holds.
    pub accumulate: bool,
    /// What happens before the store.
    pub finish: Finish<T>,
}

/// A micro-kernel for a fixed number of rows.
pub(crate) type TileFn<T> = unsafe fn(&Tile<'_, T>);

/// `out[r] = Σ rows[r][offset + i] * rhs[position]`: rows times one column, both contiguous in a run.
pub(crate) type DotFn<T> = unsafe fn(&Tile<'_, T>, usize);

/// Transposes a square block between two strides.
pub(crate) type TransposeFn<T> = unsafe fn(*const T, usize, *mut T, usize);

/// The micro-kernels for one type on this processor.
pub(crate) struct Kernels<T> {
    /// Tiles of 1 to `ROWS` rows.
    pub tile: [TileFn<T>; ROWS],
    /// Up to `ROWS` rows times one column.
    pub dot: DotFn<T>,
    /// Transposes a square of `T::SQUARE`: from, its stride, to, its stride.
    pub transpose: TransposeFn<T>,
}

impl<T: Real> Kernels<T> {
    /// Computes `count` rows of `tile`.
    ///
    /// # Safety
    /// Every address that `tile` describes for `count` rows is valid, and `1 <= count <= ROWS`.
    #[inline(always)]
    pub unsafe fn run(&self, count: usize, tile: &Tile<'_, T>) {
        // SAFETY: promised by the caller.
        unsafe { self.tile[count - 1](tile) }
    }
}

/// A panel is as many columns as the widest processors take at once; others take it in parts.
///
/// # Safety
/// As `Kernels::run`, and the processor has the instructions of `V`.
#[inline(always)]
unsafe fn tile<V: Vector, const R: usize>(t: &Tile<'_, V::Lane>) {
    for col in (0..V::Lane::PANEL.min(t.cols.max(1))).step_by(2 * V::LANES) {
        // SAFETY: as the caller; a panel is whole parts, and `col` is in one of those that are stored.
        unsafe { part::<V, R>(t, col) };
    }
}

/// Two registers of columns of a tile, from column `col` on.
///
/// # Safety
/// As `tile`, and `col` is less than a panel and than `cols`, or 0.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // Indices over constants, so that the sums stay in registers.
unsafe fn part<V: Vector, const R: usize>(t: &Tile<'_, V::Lane>, col: usize) {
    // SAFETY: the caller vouches for every address the tile names; R <= ROWS.
    unsafe {
        let mut sums = [[V::splat(V::Lane::ZERO); 2]; R];
        let (mut rhs, out, bias) = (t.rhs.add(col), t.out.add(col), t.finish.bias.wrapping_add(col));
        for r in 0..R {
            prefetch(out.wrapping_add(r * t.out_stride));
            prefetch(out.wrapping_add(r * t.out_stride + V::LANES));
            prefetch(out.wrapping_add(r * t.out_stride + 2 * V::LANES - 1));
        }
        for &segment in t.segments {
            let rows: [*const V::Lane; R] = std::array::from_fn(|r| t.rows[r].add(segment));
            let mut at = 0;
            for _ in 0..t.run {
                let right = [V::load(rhs), V::load(rhs.add(V::LANES))];
                for r in 0..R {
                    let left = V::splat(*rows[r].add(at));
                    sums[r][0] = left.mul_add(right[0], sums[r][0]);
                    sums[r][1] = left.mul_add(right[1], sums[r][1]);
                }
                at += t.step;
                rhs = rhs.add(t.rhs_step);
            }
        }
        if t.cols >= col + 2 * V::LANES {
            for r in 0..R {
                let out = out.add(r * t.out_stride);
                finish(t, sums[r][0], out, bias);
                finish(t, sums[r][1], out.add(V::LANES), bias.wrapping_add(V::LANES));
            }
        } else {
            let mut rows = [[V::Lane::ZERO; WIDEST]; R];
            for r in 0..R {
                sums[r][0].store(rows[r].as_mut_ptr());
                sums[r][1].store(rows[r].as_mut_ptr().add(V::LANES));
            }
            store_part(t, col, &rows);
        }
    }
}

/// # Safety
/// `out` is a register's width of the tile's result; so is `bias`, unless the tile has none.
#[inline(always)]
unsafe fn finish<V: Vector>(t: &Tile<'_, V::Lane>, mut sum: V, out: *mut V::Lane, bias: *const V::Lane) {
    // SAFETY: as the caller.
    unsafe {
        if t.accumulate {
            sum = sum.add(V::load(out));
        }
        if !t.finish.bias.is_null() {
            sum = sum.add(V::load(bias));
        }
        if t.finish.relu {
            sum = sum.relu();
        }
        sum.store(out);
    }
}

/// Stores the columns of some rows from `col` on; apart, so that it does not push sums out of the registers.
///
/// # Safety
/// `out` has `cols` numbers in each row, `bias` has as many or is null.
#[inline(never)]
unsafe fn store_part<T: Real>(t: &Tile<'_, T>, col: usize, rows: &[[T; WIDEST]]) {
    for (r, row) in rows.iter().enumerate() {
        for (c, &sum) in (col..t.cols).zip(row) {
            // SAFETY: as the caller.
            unsafe {
                let out = t.out.add(r * t.out_stride + c);
                let mut sum = if t.accumulate { *out + sum } else { sum };
                if !t.finish.bias.is_null() {
                    sum = sum + *t.finish.bias.add(c);
                }
                *out = if t.finish.relu && sum < T::ZERO { T::ZERO } else { sum };
            }
        }
    }
}

/// # Safety
/// The first `count` rows are readable run by run, `rhs` likewise, `out` is writable for `count` rows.
#[inline(always)]
unsafe fn dot<V: Vector>(t: &Tile<'_, V::Lane>, count: usize) {
    // SAFETY: as the caller; rows beyond `count` repeat the first, and are not stored.
    unsafe {
        let mut sums = [V::splat(V::Lane::ZERO); ROWS];
        let mut tails = [V::Lane::ZERO; ROWS];
        let mut rhs = t.rhs;
        for &segment in t.segments {
            let rows: [*const V::Lane; ROWS] =
                std::array::from_fn(|r| t.rows[if r < count { r } else { 0 }].add(segment));
            let mut at = 0;
            while at + V::LANES <= t.run {
                let right = V::load(rhs.add(at));
                for r in 0..ROWS {
                    sums[r] = V::load(rows[r].add(at)).mul_add(right, sums[r]);
                }
                at += V::LANES;
            }
            while at < t.run {
                for r in 0..ROWS {
                    tails[r] = tails[r] + *rows[r].add(at) * *rhs.add(at);
                }
                at += 1;
            }
            rhs = rhs.add(t.run);
        }
        for r in 0..count {
            let mut lanes = [V::Lane::ZERO; 8];
            sums[r].store(lanes.as_mut_ptr());
            let mut sum = lanes.iter().fold(tails[r], |sum, &lane| sum + lane);
            if !t.finish.bias.is_null() {
                sum = sum + *t.finish.bias;
            }
            *t.out.add(r * t.out_stride) = if t.finish.relu && sum < V::Lane::ZERO { V::Lane::ZERO } else { sum };
        }
    }
}

unsafe fn plain_tile<T: Real, const LANES: usize, const R: usize>(t: &Tile<'_, T>) {
    // SAFETY: as the caller; plain lanes need no instructions.
    unsafe { tile::<Plain<T, LANES>, R>(t) }
}

unsafe fn plain_dot<T: Real, const LANES: usize>(t: &Tile<'_, T>, count: usize) {
    // SAFETY: as the caller; plain lanes need no instructions.
    unsafe { dot::<Plain<T, LANES>>(t, count) }
}

unsafe fn plain_transpose<T: Real, const LANES: usize>(
    src: *const T,
    src_stride: usize,
    dst: *mut T,
    dst_stride: usize,
) {
    for row in 0..LANES {
        for col in 0..LANES {
            // SAFETY: the caller promises a square of LANES on both sides.
            unsafe { *dst.add(col * dst_stride + row) = *src.add(row * src_stride + col) };
        }
    }
}

/// The kernels in plain loops, which take `2 * LANES` columns at once.
pub(crate) const fn plain<T: Real, const LANES: usize>() -> Kernels<T> {
    Kernels {
        tile: [
            plain_tile::<T, LANES, 1>,
            plain_tile::<T, LANES, 2>,
            plain_tile::<T, LANES, 3>,
            plain_tile::<T, LANES, 4>,
            plain_tile::<T, LANES, 5>,
            plain_tile::<T, LANES, 6>,
        ],
        dot: plain_dot::<T, LANES>,
        transpose: plain_transpose::<T, LANES>,
    }
}

/// The kernels in AVX2 and FMA instructions.
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2 {
    use super::{Kernels, Tile, TransposeFn, Vector, dot, tile};

    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn fast_tile<V: Vector, const R: usize>(t: &Tile<'_, V::Lane>) {
        // SAFETY: as the caller, and these instructions are enabled here.
        unsafe { tile::<V, R>(t) }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn fast_dot<V: Vector>(t: &Tile<'_, V::Lane>, count: usize) {
        // SAFETY: as the caller, and these instructions are enabled here.
        unsafe { dot::<V>(t, count) }
    }

    /// To be used only where AVX2 and FMA were detected.
    pub(crate) const fn kernels<V: Vector>(transpose: TransposeFn<V::Lane>) -> Kernels<V::Lane> {
        Kernels {
            tile: [
                fast_tile::<V, 1>,
                fast_tile::<V, 2>,
                fast_tile::<V, 3>,
                fast_tile::<V, 4>,
                fast_tile::<V, 5>,
                fast_tile::<V, 6>,
            ],
            dot: fast_dot::<V>,
            transpose,
        }
    }
}

/// The kernels in AVX-512 instructions.
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512 {
    use super::{Kernels, Tile, Vector, avx2, tile};

    /// A narrow tile fills one register of this kind at most: two of the smaller kind are as fast then.
    #[target_feature(enable = "avx512f,avx2,fma")]
    unsafe fn fast_tile<V: Vector, N: Vector<Lane = V::Lane>, const R: usize>(t: &Tile<'_, V::Lane>) {
        // SAFETY: as the caller, and these instructions are enabled here.
        unsafe {
            match t.cols > V::LANES {
                true => tile::<V, R>(t),
                false => avx2::fast_tile::<N, R>(t),
            }
        }
    }

    /// To be used only where AVX-512, AVX2 and FMA were detected. Everything except tiles is delegated to `narrow`.
    pub(crate) const fn kernels<V: Vector, N: Vector<Lane = V::Lane>>(narrow: &Kernels<V::Lane>) -> Kernels<V::Lane> {
        Kernels {
            tile: [
                fast_tile::<V, N, 1>,
                fast_tile::<V, N, 2>,
                fast_tile::<V, N, 3>,
                fast_tile::<V, N, 4>,
                fast_tile::<V, N, 5>,
                fast_tile::<V, N, 6>,
            ],
            dot: narrow.dot,
            transpose: narrow.transpose,
        }
    }
}

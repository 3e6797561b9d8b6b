//! Element types of matrix products and the algorithm chosen for each.

use super::kernel::{Finish, Kernels};
use super::{Epilogue, Matrix, Span, blocked, kernel, thin};
use crate::Pool;
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

/// A number of which matrices can be multiplied.
pub trait Element: Copy + Send + Sync + Default + 'static {
    /// `out = epilogue(lhs rhs)`; `out` is not empty and the sizes fit.
    #[doc(hidden)]
    fn product(
        pool: &Pool,
        lhs: Matrix<'_, Self>,
        rhs: Matrix<'_, Self>,
        epilogue: Epilogue<'_, Self>,
        out: &mut [Self],
    );
}

/// A number with micro-kernels of its own.
pub(crate) trait Real:
    Element + PartialOrd + std::ops::Add<Output = Self> + std::ops::Mul<Output = Self> + std::fmt::Debug
{
    const ZERO: Self;
    /// Columns of a panel: two of the widest registers.
    const PANEL: usize;
    /// Numbers along the side of a square that is transposed at once.
    const SQUARE: usize;
    /// Depth at which a panel fills half of the first cache.
    const DEPTH: usize;

    /// Kernels that this processor can run, the fastest first; fewer than three kinds repeat.
    fn choices() -> [&'static Kernels<Self>; 3];

    /// The fastest kernels of this processor.
    #[inline]
    fn kernels() -> &'static Kernels<Self> {
        Self::choices()[0]
    }
}

macro_rules! real {
    ($type:ty, $square:literal, $depth:literal, $vector:ident, $wide:ident, $transpose:ident) => {
        impl Real for $type {
            const ZERO: $type = 0.0;
            const PANEL: usize = 4 * $square;
            const SQUARE: usize = $square;
            const DEPTH: usize = $depth;

            #[inline]
            fn choices() -> [&'static Kernels<$type>; 3] {
                static PLAIN: Kernels<$type> = kernel::plain::<$type, $square>();
                #[cfg(target_arch = "x86_64")]
                {
                    use super::vector::{$transpose, $vector, $wide};
                    static FAST: Kernels<$type> = kernel::avx2::kernels::<$vector>($transpose);
                    static FASTEST: Kernels<$type> = kernel::avx512::kernels::<$wide, $vector>(&FAST);
                    if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                        let first = if std::is_x86_feature_detected!("avx512f") { &FASTEST } else { &FAST };
                        return [first, &FAST, &PLAIN];
                    }
                }
                [&PLAIN; 3]
            }
        }

        impl Element for $type {
            fn product(
                pool: &Pool,
                lhs: Matrix<'_, $type>,
                rhs: Matrix<'_, $type>,
                epilogue: Epilogue<'_, $type>,
                out: &mut [$type],
            ) {
                real_product(pool, lhs, rhs, epilogue, out);
            }
        }
    };
}

real!(f32, 8, 256, F32x8, F32x16, transpose_f32);
real!(f64, 4, 256, F64x4, F64x8, transpose_f64);

fn real_product<T: Real>(
    pool: &Pool,
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    epilogue: Epilogue<'_, T>,
    out: &mut [T],
) {
    if lhs.cols == 0 {
        out.fill(T::ZERO);
    }
    // Which way a product goes must not depend on its epilogue: alone or joined, it has the same digits.
    if lhs.cols == 0 || thin::product(pool, &lhs, &rhs, out) {
        return finish_rows(epilogue, rhs.cols, out, |a, b| a + b, |x| if x < T::ZERO { T::ZERO } else { x });
    }
    let bias = epilogue.bias.map_or(std::ptr::null(), |bias| bias.as_ptr());
    let finish = Finish { bias, relu: epilogue.relu };
    blocked::product(pool, &lhs, &rhs, finish, Span::new(out), rhs.cols);
}

/// Applies an epilogue to finished rows.
fn finish_rows<T: Copy>(
    epilogue: Epilogue<'_, T>,
    cols: usize,
    out: &mut [T],
    add: impl Fn(T, T) -> T,
    relu: impl Fn(T) -> T,
) {
    for row in out.chunks_exact_mut(cols) {
        if let Some(bias) = epilogue.bias {
            row.iter_mut().zip(bias).for_each(|(x, &b)| *x = add(*x, b));
        }
        if epilogue.relu {
            row.iter_mut().for_each(|x| *x = relu(*x));
        }
    }
}

macro_rules! complex {
    ($type:ty, $one:expr) => {
        impl Element for $type {
            fn product(
                pool: &Pool,
                lhs: Matrix<'_, $type>,
                rhs: Matrix<'_, $type>,
                epilogue: Epilogue<'_, $type>,
                out: &mut [$type],
            ) {
                assert!(!epilogue.relu, "complex numbers have no order, hence no relu");
                let cols = rhs.cols;
                let height = lhs.rows.div_ceil(4 * pool.threads()).max(16);
                let span = Span::new(out);
                pool.run(lhs.rows.div_ceil(height), &|chunk| {
                    let row = chunk * height;
                    let rows = height.min(lhs.rows - row);
                    // SAFETY: these rows of the result belong to this chunk.
                    let out = unsafe { span.slice(row * cols, rows * cols) };
                    let lhs = Matrix { rows, ..lhs.after_rows(row) };
                    complex_rows(&lhs, &rhs, $one, out);
                    finish_rows(epilogue, cols, out, |a, b| a + b, |x| x);
                });
            }
        }
    };
}

complex!(Complex32, Complex32::new(1.0, 0.0));
complex!(Complex64, Complex64::new(1.0, 0.0));

fn complex_rows<T: Copy + Default + 'static>(lhs: &Matrix<'_, T>, rhs: &Matrix<'_, T>, one: T, out: &mut [T]) {
    if lhs.cols == 0 {
        return out.fill(T::default());
    }
    // SAFETY: the matrices fit their slices (checked by the caller), `out` is row-major of the product's size.
    unsafe {
        ::gemm::gemm(
            lhs.rows,
            rhs.cols,
            lhs.cols,
            out.as_mut_ptr(),
            1,
            rhs.cols as isize,
            false,
            lhs.values.as_ptr(),
            lhs.col_stride as isize,
            lhs.row_stride as isize,
            rhs.values.as_ptr(),
            rhs.col_stride as isize,
            rhs.row_stride as isize,
            T::default(),
            one,
            false,
            false,
            false,
            ::gemm::Parallelism::None,
        );
    }
}

macro_rules! half_float {
    ($type:ty) => {
        impl Element for $type {
            fn product(
                pool: &Pool,
                lhs: Matrix<'_, $type>,
                rhs: Matrix<'_, $type>,
                epilogue: Epilogue<'_, $type>,
                out: &mut [$type],
            ) {
                half_product(pool, lhs, rhs, epilogue, out, <$type>::to_f32, <$type>::from_f32);
            }
        }
    };
}

half_float!(f16);
half_float!(bf16);

/// Multiplies in f32, a block of rows at a time.
fn half_product<T: Copy + Send + Sync>(
    pool: &Pool,
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    epilogue: Epilogue<'_, T>,
    out: &mut [T],
    widen: fn(T) -> f32,
    narrow: fn(f32) -> T,
) {
    let (right, bias) = (widened(&rhs, widen), epilogue.bias.map(|b| b.iter().map(|&x| widen(x)).collect::<Vec<_>>()));
    let right = Matrix::new(&right, rhs.rows, rhs.cols);
    let epilogue = Epilogue { bias: bias.as_deref(), relu: epilogue.relu };
    let height = 512;
    let mut wide = vec![0.0f32; height.min(lhs.rows) * rhs.cols];
    for (block, out) in out.chunks_mut(height * rhs.cols).enumerate() {
        let rows = out.len() / rhs.cols;
        let left = widened(&Matrix { rows, ..lhs.after_rows(block * height) }, widen);
        let wide = &mut wide[..out.len()];
        f32::product(pool, Matrix::new(&left, rows, lhs.cols), right, epilogue, wide);
        out.iter_mut().zip(wide.iter()).for_each(|(out, &x)| *out = narrow(x));
    }
}

/// The numbers of a matrix, row-major, in f32.
fn widened<T: Copy>(matrix: &Matrix<'_, T>, widen: fn(T) -> f32) -> Vec<f32> {
    let mut wide = Vec::with_capacity(matrix.rows * matrix.cols);
    for row in 0..matrix.rows {
        let start = row * matrix.row_stride;
        wide.extend((0..matrix.cols).map(|col| widen(matrix.values[start + col * matrix.col_stride])));
    }
    wide
}

macro_rules! integer {
    ($($type:ty)*) => {$(
        impl Element for $type {
            fn product(pool: &Pool, lhs: Matrix<'_, $type>, rhs: Matrix<'_, $type>, epilogue: Epilogue<'_, $type>, out: &mut [$type]) {
                let add = |a: $type, b: $type| a.wrapping_add(b);
                plain_product(pool, lhs, rhs, out, |sum, a, b| add(sum, a.wrapping_mul(b)));
                finish_rows(epilogue, rhs.cols, out, add, |x| x.max(0));
            }
        }
    )*};
}

integer!(i8 i16 i32 i64 u8 u16 u32 u64);

/// Row by row, in the order in which both the right side and the result are read along their rows.
fn plain_product<T: Copy + Default + Send + Sync>(
    pool: &Pool,
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    out: &mut [T],
    mul_add: impl Fn(T, T, T) -> T + Sync,
) {
    let cols = rhs.cols;
    let height = lhs.rows.div_ceil(4 * pool.threads()).max(4);
    let span = Span::new(out);
    pool.run(lhs.rows.div_ceil(height), &|chunk| {
        for row in chunk * height..((chunk + 1) * height).min(lhs.rows) {
            // SAFETY: this row of the result belongs to this chunk.
            let out = unsafe { span.slice(row * cols, cols) };
            out.fill(T::default());
            for k in 0..lhs.cols {
                let left = lhs.values[row * lhs.row_stride + k * lhs.col_stride];
                let start = k * rhs.row_stride;
                if rhs.col_stride == 1 {
                    let right = &rhs.values[start..start + cols];
                    out.iter_mut().zip(right).for_each(|(sum, &b)| *sum = mul_add(*sum, left, b));
                } else {
                    let right = rhs.values[start..].iter().step_by(rhs.col_stride.max(1));
                    out.iter_mut().zip(right).for_each(|(sum, &b)| *sum = mul_add(*sum, left, b));
                }
            }
        }
    });
}

//! Products against three nested loops.

use crate::Pool;
use crate::gemm::kernel::{Finish, Kernels, ROWS, Tile};
use crate::gemm::{Element, Epilogue, Matrix, Real, matmul, matmul_batch, matmul_with};
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

const SIZES: [usize; 9] = [0, 1, 2, 5, 6, 7, 17, 33, 70];

/// Small whole numbers: their products and sums are exact in every type.
fn numbers<T>(len: usize, seed: usize, of: fn(i32) -> T) -> Vec<T> {
    (0..len).map(|i| of(((i * 7 + seed * 5 + i / 11) % 5) as i32)).collect()
}

fn plain<T>(lhs: &Matrix<'_, T>, rhs: &Matrix<'_, T>) -> Vec<T>
where
    T: Element + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
{
    let mut out = Vec::new();
    for i in 0..lhs.rows {
        for j in 0..rhs.cols {
            out.push((0..lhs.cols).fold(T::default(), |sum, k| {
                let left = lhs.values[i * lhs.row_stride + k * lhs.col_stride];
                sum + left * rhs.values[k * rhs.row_stride + j * rhs.col_stride]
            }));
        }
    }
    out
}

fn check_size<T>(pool: &Pool, (m, k, n): (usize, usize, usize), of: fn(i32) -> T)
where
    T: Element + PartialEq + std::fmt::Debug + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
{
    let (a, b) = (numbers(m * k, 1, of), numbers(k * n, 2, of));
    for transposed in 0..4 {
        let lhs = if transposed & 1 > 0 { Matrix::new(&a, k, m).transposed() } else { Matrix::new(&a, m, k) };
        let rhs = if transposed & 2 > 0 { Matrix::new(&b, n, k).transposed() } else { Matrix::new(&b, k, n) };
        let mut out = vec![of(99); m * n];
        matmul(pool, lhs, rhs, &mut out);
        assert_eq!(out, plain(&lhs, &rhs), "{m}x{k}x{n}, transposed {transposed}");
    }
}

fn check_sizes<T>(of: fn(i32) -> T)
where
    T: Element + PartialEq + std::fmt::Debug + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
{
    let pool = Pool::new(2);
    for m in SIZES {
        for k in SIZES {
            for n in SIZES {
                check_size(&pool, (m, k, n), of);
            }
        }
    }
}

#[test]
fn floats_of_all_sizes() {
    check_sizes(|x| x as f32);
    check_sizes(f64::from);
}

#[test]
fn other_numbers_of_all_sizes() {
    check_sizes(|x| x);
    check_sizes(|x| x as u8 % 2);
    check_sizes(i64::from);
    check_sizes(|x| Complex32::new(x as f32, 1.0));
    check_sizes(|x| Complex64::new(f64::from(x), -2.0));
}

#[test]
fn large_products_cross_all_block_borders() {
    let pool = Pool::new(3);
    check_size(&pool, (400, 600, 530), |x| x as f32);
    check_size(&pool, (400, 300, 270), f64::from);
    check_size(&pool, (1, 3000, 700), |x| x as f32);
    check_size(&pool, (3000, 700, 1), |x| x as f32);
    check_size(&pool, (2, 700, 3001), f64::from);
    check_size(&pool, (130, 512, 10), |x| x as f32);
}

/// The loops that other processors run, which no product here would reach.
#[test]
fn plain_kernels_agree_with_fast_ones() {
    check_kernels::<f32>(|x| x as f32);
    check_kernels::<f64>(f64::from);
}

fn check_kernels<T: Real>(of: fn(i32) -> T) {
    let (left, right, bias) = (numbers(2000, 1, of), numbers(2000, 2, of), numbers(T::PANEL, 3, of));
    let [fastest, fast, plain] = T::choices();
    for (count, run, cols, relu) in [
        (1, 0, 1, true),
        (6, 1, T::PANEL, false),
        (5, 7, T::PANEL - 1, true),
        (4, 20, T::PANEL, true),
        (3, 9, T::PANEL / 2, true),
        (2, 9, T::PANEL / 2 + 1, false),
        (6, 20, T::PANEL / 4 + 1, true),
    ] {
        let multiply = |kernels: &Kernels<T>, narrow: bool| {
            let mut out = vec![of(-3); ROWS * T::PANEL];
            let tile = Tile {
                rows: std::array::from_fn(|r| left[r * 40..].as_ptr()),
                step: 2,
                segments: &[0, 300, 50],
                run,
                rhs: right.as_ptr(),
                rhs_step: T::PANEL,
                out: out.as_mut_ptr(),
                out_stride: T::PANEL,
                cols,
                accumulate: !narrow,
                finish: Finish { bias: bias.as_ptr(), relu },
            };
            // SAFETY: rows, segments and runs stay below 2000 numbers, the result is a whole tile.
            unsafe { if narrow { (kernels.dot)(&tile, count) } else { kernels.run(count, &tile) } }
            out
        };
        for kernels in [fastest, fast] {
            assert_eq!(multiply(kernels, false), multiply(plain, false), "{count} rows, {cols} columns");
            assert_eq!(multiply(kernels, true), multiply(plain, true), "{count} rows, {cols} columns");
        }
    }
    let flip = |kernels: &Kernels<T>| {
        let mut out = vec![of(0); T::SQUARE * T::SQUARE];
        // SAFETY: both sides hold such a square at their strides.
        unsafe { (kernels.transpose)(left.as_ptr(), 11, out.as_mut_ptr(), T::SQUARE) };
        out
    };
    assert_eq!(flip(fastest), flip(plain));
    assert_eq!(flip(fast), flip(plain));
}

#[test]
fn half_floats_sum_in_single_precision() {
    let pool = Pool::new(2);
    let (m, k, n) = (7, 300, 5);
    let wide = |x: i32| x as f32 * 0.25;
    let (a, b) = (numbers(m * k, 1, wide), numbers(k * n, 2, wide));
    let expected = plain(&Matrix::new(&a, m, k), &Matrix::new(&b, k, n));
    let (a16, b16): (Vec<_>, Vec<_>) =
        (a.iter().map(|&x| f16::from_f32(x)).collect(), b.iter().map(|&x| f16::from_f32(x)).collect());
    let mut out = vec![f16::ZERO; m * n];
    matmul(&pool, Matrix::new(&a16, m, k), Matrix::new(&b16, k, n), &mut out);
    assert_eq!(out, expected.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>());
    let (a16, b16): (Vec<_>, Vec<_>) =
        (a.iter().map(|&x| bf16::from_f32(x)).collect(), b.iter().map(|&x| bf16::from_f32(x)).collect());
    let mut out = vec![bf16::ZERO; m * n];
    matmul(&pool, Matrix::new(&a16, m, k), Matrix::new(&b16, k, n), &mut out);
    assert_eq!(out, expected.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>());
}

#[test]
fn integers_wrap() {
    let mut out = [0u8];
    matmul(&Pool::new(1), Matrix::new(&[200u8, 100], 1, 2), Matrix::new(&[2, 3], 2, 1), &mut out);
    assert_eq!(out, [(700 % 256) as u8]);
}

#[test]
fn epilogue_adds_the_bias_then_clips() {
    let pool = Pool::new(2);
    for (m, k, n) in [(1, 1, 1), (3, 0, 4), (13, 300, 1), (13, 600, 37), (150, 70, 160)] {
        let of = |x: i32| (x - 2) as f32;
        let (a, b, bias) = (numbers(m * k, 1, of), numbers(k * n, 2, of), numbers(n, 3, of));
        let (lhs, rhs) = (Matrix::new(&a, m, k), Matrix::new(&b, k, n));
        for relu in [false, true] {
            let mut out = vec![9.0; m * n];
            matmul_with(&pool, lhs, rhs, Epilogue { bias: Some(&bias), relu }, &mut out);
            let finish = |(i, &x): (usize, &f32)| if relu { (x + bias[i % n]).max(0.0) } else { x + bias[i % n] };
            let expected: Vec<f32> = plain(&lhs, &rhs).iter().enumerate().map(finish).collect();
            assert_eq!(out, expected, "{m}x{k}x{n}, relu {relu}");
        }
    }
}

#[test]
fn relu_keeps_nan() {
    let mut out = [0.0f32; 17];
    let epilogue = Epilogue { bias: None, relu: true };
    matmul_with(&Pool::new(1), Matrix::new(&[f32::NAN], 1, 1), Matrix::new(&[1.0; 17], 1, 17), epilogue, &mut out);
    assert!(out.iter().all(|x| x.is_nan()));
}

#[test]
fn batches_share_and_repeat_matrices() {
    let pool = Pool::new(2);
    let (m, k, n) = (3, 4, 5);
    let (a, b) = (numbers(3 * m * k, 1, f64::from), numbers(2 * k * n, 2, f64::from));
    for count in [0, 1, 2, 40] {
        let offsets: Vec<_> = (0..count).map(|i| (i % 3 * m * k, i % 2 * k * n)).collect();
        let mut out = vec![0.0; count * m * n];
        matmul_batch(&pool, Matrix::new(&a, m, k), Matrix::new(&b, k, n), &offsets, &mut out);
        for (out, &(left, right)) in out.chunks(m * n).zip(&offsets) {
            assert_eq!(out, plain(&Matrix::new(&a[left..], m, k), &Matrix::new(&b[right..], k, n)));
        }
    }
}

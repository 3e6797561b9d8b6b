//! Softmax and cross entropies against double precision.

use half::f16;

use crate::Pool;
use crate::softmax::*;

fn logits(rows: usize, width: usize) -> Vec<f32> {
    (0..rows * width).map(|i| (i * 7919 % 1013) as f32 * 0.02 - 9.0).collect()
}

fn exact(row: &[f32]) -> (Vec<f64>, f64) {
    let max = row.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(f64::from(b)));
    let terms: Vec<f64> = row.iter().map(|&x| (f64::from(x) - max).exp()).collect();
    let sum: f64 = terms.iter().sum();
    (terms.into_iter().map(|term| term / sum).collect(), max + sum.ln())
}

const SHAPES: [(usize, usize); 7] = [(0, 5), (1, 1), (3, 2), (7, 17), (5, 64), (3, 1001), (700, 129)];

#[test]
fn softmax_and_its_logarithm() {
    let pool = Pool::new(2);
    for (rows, width) in SHAPES {
        let src = logits(rows, width);
        let (mut plain, mut log, mut sums) = (vec![0.0; src.len()], vec![0.0; src.len()], vec![0.0; rows]);
        softmax(&pool, width, &src, &mut plain);
        log_softmax(&pool, width, &src, &mut log);
        log_sum_exp(&pool, width, &src, &mut sums);
        let small: Vec<f16> = src.iter().map(|&x| f16::from_f32(x)).collect();
        let mut halves = vec![f16::ZERO; src.len()];
        softmax(&pool, width, &small, &mut halves);
        for (row, &found) in sums.iter().enumerate() {
            let range = row * width..(row + 1) * width;
            let (expected, sum) = exact(&src[range.clone()]);
            assert!((f64::from(found) - sum).abs() < 1e-5);
            for (i, expected) in range.zip(expected) {
                assert!((f64::from(plain[i]) - expected).abs() < 3e-6 * expected + 1e-30, "{rows} {width} {i}");
                assert!((f64::from(log[i]) - expected.ln()).abs() < 1e-5);
                assert!((halves[i].to_f64() - expected).abs() < 0.02 * expected + 1e-4);
            }
        }
    }
}

#[test]
fn cross_entropies() {
    let pool = Pool::new(2);
    for (rows, width) in SHAPES {
        let src = logits(rows, width);
        let class = |row: usize| row * 31 % width;
        let mut labels = vec![0.0; src.len()];
        (0..rows).for_each(|row| labels[row * width + class(row)] = 1.0);
        let (mut loss, mut backprop) = (vec![0.0; rows], vec![0.0; src.len()]);
        softmax_cross_entropy(&pool, width, &src, &labels, &mut loss, &mut backprop);
        let (mut sparse_loss, mut sparse_backprop) = (vec![0.0; rows], vec![0.0; src.len()]);
        sparse_softmax_cross_entropy(&pool, width, &src, class, &mut sparse_loss, &mut sparse_backprop);
        for row in 0..rows {
            let range = row * width..(row + 1) * width;
            let (expected, sum) = exact(&src[range.clone()]);
            let entropy = sum - f64::from(src[row * width + class(row)]);
            assert!((f64::from(loss[row]) - entropy).abs() < 1e-5);
            assert!((f64::from(sparse_loss[row]) - entropy).abs() < 1e-5);
            for (i, expected) in range.zip(expected) {
                let expected = expected - f64::from(labels[i]);
                assert!((f64::from(backprop[i]) - expected).abs() < 1e-6);
                assert!((f64::from(sparse_backprop[i]) - expected).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn infinities_as_tensorflow() {
    let pool = Pool::new(1);
    let i = f32::INFINITY;
    let mut dst = [0.0; 8];
    softmax(&pool, 2, &[-i, -i, i, 1.0, f32::NAN, 1.0, -i, 1.0], &mut dst);
    assert!(dst[..6].iter().all(|x| x.is_nan()));
    assert_eq!(dst[6..], [0.0, 1.0]);
    let (mut loss, mut backprop) = ([0.0; 2], [0.0; 6]);
    let labels = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
    softmax_cross_entropy(&pool, 3, &[1.0, -i, 2.0, 1.0, -i, 2.0], &labels, &mut loss, &mut backprop);
    assert!(loss[0].is_nan() && loss[1] == i);
    assert!((backprop[0] + 0.731_058_6).abs() < 1e-6 && backprop[4] == -1.0);
}

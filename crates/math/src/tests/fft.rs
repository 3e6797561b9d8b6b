//! Fourier transforms against their definition.

use crate::Pool;
use crate::fft::{Direction, Plans, Rows, along, fit, forward_rows, inverse_rows};
use num_complex::Complex;
use std::f64::consts::TAU;

fn numbers(count: usize) -> Vec<Complex<f64>> {
    let part = |i: usize, by: usize| ((i * by) % 101) as f64 / 50.0 - 1.0;
    (0..count).map(|i| Complex::new(part(i, 37), part(i, 53))).collect()
}

/// The definition, of shape [outer, len, inner].
fn defined(values: &[Complex<f64>], len: usize, inner: usize, sign: f64) -> Vec<Complex<f64>> {
    let term = |at: usize, k: usize, n: usize| {
        let place = at / (len * inner) * len * inner + n * inner + at % inner;
        values[place] * Complex::from_polar(1.0, sign * TAU * ((k * n) % len) as f64 / len as f64)
    };
    (0..values.len()).map(|at| (0..len).map(|n| term(at, at / inner % len, n)).sum()).collect()
}

fn close(found: &[Complex<f64>], expected: &[Complex<f64>]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).norm() < 1e-9, "{found} and {expected}");
    }
}

#[test]
fn every_axis_is_transformed_as_defined() {
    let (pool, plans) = (Pool::new(2), Plans::default());
    for [outer, len, inner] in [[0, 3, 1], [1, 1, 1], [3, 8, 1], [2, 7, 5], [1, 12, 33], [40, 31, 16], [1, 1009, 1]] {
        let values = numbers(outer * len * inner);
        for (direction, sign, scale) in [(Direction::Forward, -1.0, 1.0), (Direction::Inverse, 1.0, 0.5)] {
            let mut found = values.clone();
            along(&pool, &plans, direction, &mut found, [len, inner], scale);
            let expected: Vec<_> = defined(&values, len, inner, sign).iter().map(|value| value * scale).collect();
            close(&found, &expected);
        }
    }
}

#[test]
fn real_rows_have_the_first_half_of_their_frequencies() {
    let (pool, plans) = (Pool::new(2), Plans::default());
    for (count, len) in [(0, 4), (1, 1), (3, 2), (2, 9), (60, 64), (1, 1009)] {
        let real: Vec<f64> = numbers(count * len).iter().map(|value| value.re).collect();
        let whole: Vec<_> = real.iter().map(|&value| Complex::new(value, 0.0)).collect();
        let half = len / 2 + 1;
        let expected: Vec<_> = defined(&whole, len, 1, -1.0).chunks(len).flat_map(|row| row[..half].to_vec()).collect();
        let mut found = vec![Complex::default(); count * half];
        let rows = Rows::new(&[count, len], &[count, len]);
        forward_rows(&pool, &plans, &rows, [len, len], &real, &mut found);
        close(&found, &expected);
        let mut back = vec![0.0; real.len()];
        inverse_rows(&pool, &plans, [half, len], 1.0 / len as f64, &found, &mut back);
        assert!(back.iter().zip(&real).all(|(back, real)| (back - real).abs() < 1e-9));
    }
}

#[test]
fn rows_are_cropped_and_padded() {
    let (from, to) = ([2, 2, 3], [2, 3, 2]);
    let values = numbers(12);
    let mut found = vec![Complex::new(7.0, 7.0); 12];
    fit(&Pool::new(1), &Rows::new(&from, &to), [3, 2], &values, &mut found);
    for (at, &found) in found.iter().enumerate() {
        let (outer, row, column) = (at / 6, at / 2 % 3, at % 2);
        let expected = if row < 2 { values[outer * 6 + row * 3 + column] } else { Complex::default() };
        assert_eq!(found, expected);
    }
}

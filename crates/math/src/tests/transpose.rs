//! Permutations against index arithmetic.

use crate::Pool;
use crate::transpose::*;

fn expected(dims: &[usize], order: &[usize]) -> Vec<usize> {
    let out_dims: Vec<usize> = order.iter().map(|&axis| dims[axis]).collect();
    (0..dims.iter().product())
        .map(|mut i| {
            let mut coordinates = vec![0; dims.len()];
            for (&axis, &dim) in order.iter().zip(&out_dims).rev() {
                coordinates[axis] = i % dim;
                i /= dim;
            }
            coordinates.iter().zip(dims).fold(0, |at, (c, d)| at * d + c)
        })
        .collect()
}

const CASES: [(&[usize], &[usize]); 19] = [
    (&[], &[]),
    (&[5], &[0]),
    (&[0, 3], &[1, 0]),
    (&[1, 1], &[1, 0]),
    (&[2, 3], &[1, 0]),
    (&[16, 16], &[1, 0]),
    (&[17, 33], &[1, 0]),
    (&[300, 400], &[1, 0]),
    (&[5000, 3], &[1, 0]),
    (&[3, 5000], &[1, 0]),
    (&[4200, 70], &[1, 0]),
    (&[3, 40, 50], &[0, 2, 1]),
    (&[3, 40, 50], &[2, 1, 0]),
    (&[3, 40, 50], &[1, 0, 2]),
    (&[2, 17, 18, 19], &[0, 3, 1, 2]),
    (&[2, 17, 18, 19], &[0, 2, 3, 1]),
    (&[4, 1, 5, 6], &[2, 1, 3, 0]),
    (&[2, 3, 4, 5, 6], &[4, 2, 0, 3, 1]),
    (&[20, 30, 3], &[1, 0, 2]),
];

fn check<T: Copy + Send + Sync + PartialEq + std::fmt::Debug>(convert: impl Fn(usize) -> T) {
    for threads in [1, 2] {
        let pool = Pool::new(threads);
        for (dims, order) in CASES {
            let expected: Vec<T> = expected(dims, order).into_iter().map(&convert).collect();
            let src: Vec<T> = (0..expected.len()).map(&convert).collect();
            let mut dst = vec![convert(0); src.len()];
            transpose(&pool, &Permutation::new(dims, order), &src, &mut dst);
            assert_eq!(dst, expected, "{dims:?} {order:?}");
        }
    }
}

#[test]
fn elements_of_every_size() {
    check(|i| i as u8);
    check(|i| i as u16);
    check(|i| i as u32);
    check(|i| i as u64);
    check(|i| i as u128);
}

#[test]
fn elements_that_are_cloned() {
    for (dims, order) in CASES {
        let expected: Vec<String> = expected(dims, order).into_iter().map(|i| i.to_string()).collect();
        let src: Vec<String> = (0..expected.len()).map(|i| i.to_string()).collect();
        assert_eq!(transpose_clone(&Permutation::new(dims, order), &src), expected);
    }
}

//! Reductions against loops over indices.

use half::bf16;

use crate::Pool;
use crate::reduce::*;

const SHAPES: [&[usize]; 12] = [
    &[],
    &[0],
    &[1],
    &[7],
    &[3, 4],
    &[0, 3],
    &[3, 0, 2],
    &[2, 3, 4, 5],
    &[5, 1, 33],
    &[70_001],
    &[401, 67],
    &[3, 129, 65],
];

/// For every result, the elements it is made of, in order.
fn groups(dims: &[usize], reduced: &[bool]) -> Vec<Vec<usize>> {
    let kept: usize = dims.iter().zip(reduced).filter(|(_, r)| !**r).map(|(d, _)| d).product();
    let mut groups = vec![Vec::new(); kept];
    for i in 0..dims.iter().product() {
        let (mut rest, mut at, mut stride) = (i, 0, 1);
        for (&dim, &flag) in dims.iter().zip(reduced).rev() {
            if !flag {
                at += rest % dim * stride;
                stride *= dim;
            }
            rest /= dim;
        }
        groups[at].push(i);
    }
    groups
}

fn each_case(mut check: impl FnMut(&Pool, &Reduction, &[usize], &[Vec<usize>])) {
    for threads in [1, 3] {
        let pool = Pool::new(threads);
        for dims in SHAPES {
            for mask in 0..1 << dims.len() {
                let reduced: Vec<bool> = (0..dims.len()).map(|axis| mask >> axis & 1 == 1).collect();
                check(&pool, &Reduction::new(dims, &reduced), dims, &groups(dims, &reduced));
            }
        }
    }
}

fn numbers(dims: &[usize]) -> Vec<f32> {
    (0..dims.iter().product()).map(|i: usize| (i * 7919 % 1013) as f32 * 0.01 - 4.0).collect()
}

#[test]
fn sums_and_means() {
    each_case(|pool, shape, dims, groups| {
        let src = numbers(dims);
        let (mut sums, mut means) = (vec![0.0; groups.len()], vec![0.0; groups.len()]);
        reduce_axes(pool, 1.0, shape, &src, &mut sums, Sum);
        reduce_axes(pool, 1.0, shape, &src, &mut means, Mean);
        for ((group, &sum), &mean) in groups.iter().zip(&sums).zip(&means) {
            let exact: f64 = group.iter().map(|&i| f64::from(src[i])).sum();
            let scale: f64 = group.iter().map(|&i| f64::from(src[i]).abs()).sum();
            assert!((f64::from(sum) - exact).abs() <= 2e-6 * scale, "{dims:?}: {sum} for {exact}");
            let exact = exact / group.len() as f64;
            assert!(exact.is_nan() && mean.is_nan() || (f64::from(mean) - exact).abs() < 1e-4, "{dims:?} mean");
        }
    });
}

#[test]
fn integers_extremes_and_flags() {
    each_case(|pool, shape, dims, groups| {
        let src: Vec<i32> = numbers(dims).into_iter().map(|x| (x * 100.0) as i32).collect();
        let flags: Vec<bool> = src.iter().map(|x| x % 5 != 0).collect();
        let run = |f: &dyn Fn(&mut [i32])| {
            let mut dst = vec![0; groups.len()];
            f(&mut dst);
            dst
        };
        let expect = |f: &dyn Fn(&mut dyn Iterator<Item = i32>) -> i32| -> Vec<i32> {
            groups.iter().map(|group| f(&mut group.iter().map(|&i| src[i]))).collect()
        };
        assert_eq!(run(&|dst| reduce_axes(pool, 1.0, shape, &src, dst, Sum)), expect(&|g| g.sum()), "{dims:?}");
        assert_eq!(run(&|dst| reduce_axes(pool, 1.0, shape, &src, dst, Max)), expect(&|g| g.max().unwrap_or(i32::MIN)));
        assert_eq!(run(&|dst| reduce_axes(pool, 1.0, shape, &src, dst, Min)), expect(&|g| g.min().unwrap_or(i32::MAX)));
        assert_eq!(
            run(&|dst| reduce_axes(pool, 1.0, shape, &src, dst, Prod)),
            expect(&|g| g.fold(1, |a, b| a.wrapping_mul(b)))
        );
        let (mut all, mut any) = (vec![false; groups.len()], vec![false; groups.len()]);
        reduce_axes(pool, 1.0, shape, &flags, &mut all, All);
        reduce_axes(pool, 1.0, shape, &flags, &mut any, Any);
        for ((group, all), any) in groups.iter().zip(all).zip(any) {
            assert_eq!(all, group.iter().all(|&i| flags[i]));
            assert_eq!(any, group.iter().any(|&i| flags[i]));
        }
    });
}

#[test]
fn a_long_sum_of_floats_keeps_its_digits() {
    let pool = Pool::new(2);
    let n = 10_000_000;
    let src = vec![0.1f32; n];
    let mut sum = [0.0f32];
    reduce_axes(&pool, 1.0, &Reduction::new(&[n], &[true]), &src, &mut sum, Sum);
    assert!((sum[0] - 1e6).abs() < 1.0, "{}", sum[0]);
    let ones = vec![bf16::ONE; 3000];
    let mut sum = [bf16::ZERO];
    reduce_axes(&pool, 1.0, &Reduction::new(&[3000], &[true]), &ones, &mut sum, Sum);
    assert_eq!(sum[0], bf16::from_f32(3000.0));
}

#[test]
fn not_a_number_is_an_extreme_but_has_no_position() {
    let pool = Pool::new(1);
    let src = [f32::NAN, 1.0, 2.0, 1.0, f32::NAN, 2.0, 1.0, 2.0, f32::NAN];
    for reduced in [[false, true], [true, false]] {
        let mut dst = [0.0f32; 3];
        reduce_axes(&pool, 1.0, &Reduction::new(&[3, 3], &reduced), &src, &mut dst, Max);
        assert!(dst.iter().all(|x| x.is_nan()));
        reduce_axes(&pool, 1.0, &Reduction::new(&[3, 3], &reduced), &src, &mut dst, Min);
        assert!(dst.iter().all(|x| x.is_nan()));
    }
    let mut positions = [0i64; 3];
    argmax(&pool, [3, 3, 1], &src, &mut positions);
    assert_eq!(positions, [2, 2, 1]);
    argmin(&pool, [3, 3, 1], &src, &mut positions);
    assert_eq!(positions, [1, 0, 0]);
    argmax(&pool, [1, 3, 3], &src, &mut positions);
    assert_eq!(positions, [1, 2, 0]);
}

#[test]
fn means_of_integers_do_not_overflow() {
    let pool = Pool::new(1);
    let mut mean = [0u8];
    reduce_axes(&pool, 1.0, &Reduction::new(&[3], &[true]), &[200u8; 3], &mut mean, Mean);
    assert_eq!(mean, [200]);
    let mut norm = [0i32];
    reduce_axes(&pool, 1.0, &Reduction::new(&[2], &[true]), &[3, 5], &mut norm, EuclideanNorm);
    assert_eq!(norm, [5]);
}

#[test]
fn running_results() {
    let pool = Pool::new(2);
    let src = [1.0f32, 2.0, 3.0, 4.0];
    let directions = [(false, false), (false, true), (true, false), (true, true)];
    let sums = [[1.0, 3.0, 6.0, 10.0], [10.0, 9.0, 7.0, 4.0], [0.0, 1.0, 3.0, 6.0], [9.0, 7.0, 4.0, 0.0]];
    let products = [[1.0, 2.0, 6.0, 24.0], [24.0, 24.0, 12.0, 4.0], [1.0, 1.0, 2.0, 6.0], [24.0, 12.0, 4.0, 1.0]];
    for (i, (exclusive, reverse)) in directions.into_iter().enumerate() {
        let direction = Direction { exclusive, reverse };
        let mut dst = [0.0; 4];
        cumsum(&pool, [1, 4, 1], direction, &src, &mut dst);
        assert_eq!(dst, sums[i]);
        cumprod(&pool, [1, 4, 1], direction, &src, &mut dst);
        assert_eq!(dst, products[i]);
        let logs = [1.0f32, 2.0, f32::NEG_INFINITY, 4.0];
        let expected = [
            [1.0f32, 2.3132617, 2.3132617, 4.169846],
            [4.169846, 4.126928, 4.0, 4.0],
            [f32::NEG_INFINITY, 1.0, 2.3132617, 2.3132617],
            [4.126928, 4.0, 4.0, f32::NEG_INFINITY],
        ];
        cumulative_logsumexp(&pool, [1, 4, 1], direction, &logs, &mut dst);
        for (found, expected) in dst.into_iter().zip(expected[i]) {
            assert!(found == expected || (found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }
    let mut dst = [0; 6];
    cumsum(&pool, [1, 3, 2], Direction::default(), &[1, 2, 3, 4, 5, 6], &mut dst);
    assert_eq!(dst, [1, 2, 4, 6, 9, 12]);
}

//! Maps, zips and broadcasts against index arithmetic.

use crate::Pool;
use crate::elementwise::*;

/// Lengths below, at and above vectors and chunks.
const LENGTHS: [usize; 8] = [0, 1, 7, 8, 63, 65, 1001, 300_001];

fn numbers(len: usize) -> Vec<f32> {
    (0..len).map(|i| (i * 37 % 101) as f32 - 50.0).collect()
}

#[test]
fn map_is_a_plain_loop() {
    let pool = Pool::new(2);
    for len in LENGTHS {
        let src = numbers(len);
        let expected: Vec<f32> = src.iter().map(|x| x * 2.0 + 1.0).collect();
        let mut dst = vec![0.0; len];
        map(&pool, 1.0, &src, &mut dst, |x| x * 2.0 + 1.0);
        assert_eq!(dst, expected);
        let mut values = src;
        map_in_place(&pool, 1.0, &mut values, |x| x * 2.0 + 1.0);
        assert_eq!(values, expected);
        fill(&pool, &mut values, 3.0);
        assert!(values.iter().all(|x| *x == 3.0));
    }
}

#[test]
fn rare_elements_take_the_exact_way() {
    let pool = Pool::new(2);
    for len in LENGTHS {
        let src = numbers(len);
        let mut dst = vec![0.0; len];
        map_guarded(&pool, 1.0, &src, &mut dst, |x| x + 1.0, |x| x > 49.0, |x| -x);
        let expected: Vec<f32> = src.iter().map(|&x| if x > 49.0 { -x } else { x + 1.0 }).collect();
        assert_eq!(dst, expected);
    }
}

#[test]
fn zip_is_a_plain_loop() {
    let pool = Pool::new(2);
    for len in LENGTHS {
        let (a, b) = (numbers(len), numbers(len + 3)[3..].to_vec());
        let expected: Vec<f32> = a.iter().zip(&b).map(|(x, y)| x - y).collect();
        let mut dst = vec![0.0; len];
        zip(&pool, 1.0, &a, &b, &mut dst, |x, y| x - y);
        assert_eq!(dst, expected);
        let mut left = a.clone();
        zip_in_place_left(&pool, 1.0, &mut left, &b, |x, y| x - y);
        assert_eq!(left, expected);
        let mut right = b.clone();
        zip_in_place_right(&pool, 1.0, &a, &mut right, |x, y| x - y);
        assert_eq!(right, expected);
        zip_scalar_left(&pool, 1.0, 5.0, &b, &mut dst, |x, y| x - y);
        assert_eq!(dst, b.iter().map(|y| 5.0 - y).collect::<Vec<f32>>());
        zip_scalar_right(&pool, 1.0, &a, 5.0, &mut dst, |x, y| x - y);
        assert_eq!(dst, a.iter().map(|x| x - 5.0).collect::<Vec<f32>>());
    }
}

/// The position in an operand of shape `dims` of the element `index` of the result.
fn position(dims: &[usize], out_dims: &[usize], mut index: usize) -> usize {
    let (mut at, mut stride) = (0, 1);
    for (back, &out) in out_dims.iter().rev().enumerate() {
        let coordinate = index % out;
        index /= out;
        if back < dims.len() && dims[dims.len() - 1 - back] != 1 {
            at += coordinate * stride;
            stride *= dims[dims.len() - 1 - back];
        }
    }
    at
}

fn size(dims: &[usize]) -> usize {
    dims.iter().product()
}

const SHAPES: [(&[usize], &[usize]); 16] = [
    (&[], &[]),
    (&[1], &[]),
    (&[3, 4], &[3, 4]),
    (&[3, 4], &[4]),
    (&[3, 1], &[3, 4]),
    (&[3, 1], &[1, 4]),
    (&[], &[2, 3]),
    (&[2, 3, 4, 5], &[4, 1]),
    (&[2, 1, 4, 1], &[3, 1, 5]),
    (&[0, 3], &[1, 3]),
    (&[5, 0], &[1]),
    (&[1, 1, 7], &[6, 5, 1]),
    (&[300, 3], &[3]),
    (&[20_001, 10], &[10]),
    (&[300, 1000], &[1000]),
    (&[300, 1000], &[300, 1]),
];

#[test]
fn broadcast_is_index_arithmetic() {
    let pool = Pool::new(2);
    for (lhs, rhs) in SHAPES.into_iter().flat_map(|(lhs, rhs)| [(lhs, rhs), (rhs, lhs)]) {
        let shape = Broadcast::new(lhs, rhs).unwrap();
        let (a, b) = (numbers(size(lhs)), numbers(size(rhs) + 1)[1..].to_vec());
        let out = shape.out_dims().to_vec();
        let expected: Vec<f32> =
            (0..size(&out)).map(|i| a[position(lhs, &out, i)] - 2.0 * b[position(rhs, &out, i)]).collect();
        let mut dst = vec![0.0; expected.len()];
        broadcast(&pool, 1.0, &shape, &a, &b, &mut dst, |x, y| x - 2.0 * y);
        assert_eq!(dst, expected, "{lhs:?} {rhs:?}");
        if shape.is_whole(0) && size(lhs) == expected.len() {
            let mut values = a.clone();
            broadcast_in_place_left(&pool, 1.0, &shape, &mut values, &b, |x, y| x - 2.0 * y);
            assert_eq!(values, expected, "{lhs:?} {rhs:?} left");
        }
        if shape.is_whole(1) && size(rhs) == expected.len() {
            let mut values = b.clone();
            broadcast_in_place_right(&pool, 1.0, &shape, &a, &mut values, |x, y| x - 2.0 * y);
            assert_eq!(values, expected, "{lhs:?} {rhs:?} right");
        }
        let mut repeated = vec![0.0; expected.len()];
        broadcast_to(&pool, lhs, &out, &a, &mut repeated);
        let expected: Vec<f32> = (0..size(&out)).map(|i| a[position(lhs, &out, i)]).collect();
        assert_eq!(repeated, expected, "{lhs:?} to {out:?}");
    }
}

#[test]
fn shapes_that_do_not_meet() {
    for (lhs, rhs) in [(&[2][..], &[3][..]), (&[2, 3], &[2]), (&[0], &[2])] {
        assert!(Broadcast::new(lhs, rhs).is_none(), "{lhs:?} {rhs:?}");
    }
    assert_eq!(Broadcast::new(&[0], &[1]).unwrap().out_dims(), [0]);
    assert_eq!(Broadcast::new(&[2, 1], &[3]).unwrap().out_dims(), [2, 3]);
}

#[test]
fn select_is_index_arithmetic() {
    let pool = Pool::new(2);
    let shapes: [[&[usize]; 3]; 6] = [
        [&[6], &[6], &[6]],
        [&[], &[3, 4], &[4]],
        [&[3, 1], &[3, 4], &[3, 4]],
        [&[3, 4], &[], &[1]],
        [&[2, 1, 2], &[3, 1], &[]],
        [&[0], &[], &[1]],
    ];
    for [cond, a, b] in shapes {
        let shape = Broadcast::of([cond, a, b]).unwrap();
        let out = shape.out_dims().to_vec();
        let conditions: Vec<bool> = (0..size(cond)).map(|i| i % 3 == 0).collect();
        let (x, y) = (numbers(size(a)), numbers(size(b) + 5)[5..].to_vec());
        let expected: Vec<f32> = (0..size(&out))
            .map(|i| {
                let chosen = conditions[position(cond, &out, i)];
                if chosen { x[position(a, &out, i)] } else { y[position(b, &out, i)] }
            })
            .collect();
        let mut dst = vec![0.0; expected.len()];
        select(&pool, 1.0, &shape, &conditions, &x, &y, &mut dst);
        assert_eq!(dst, expected, "{cond:?} {a:?} {b:?}");
    }
}

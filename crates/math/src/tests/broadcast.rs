//! Broadcasting of any shapes against a plain model: numpy's rule, one element at a time.

use crate::Pool;
use crate::elementwise::*;
use proptest::prelude::*;

/// The common shape by the rule, counted from the last axis; nothing when two sizes disagree.
fn common(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let size = |dims: &[usize], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |at| dims[at]);
    (0..rank)
        .map(|axis| match (size(a, axis), size(b, axis)) {
            (1, y) => Some(y),
            (x, 1) => Some(x),
            (x, y) => (x == y).then_some(x),
        })
        .collect()
}

/// Where in an operand of shape `dims` the element with these coordinates of the result stands.
fn place(dims: &[usize], coordinates: &[usize]) -> usize {
    let skipped = coordinates.len() - dims.len();
    dims.iter().zip(&coordinates[skipped..]).fold(0, |at, (&dim, &c)| at * dim + if dim == 1 { 0 } else { c })
}

fn coordinates(dims: &[usize], mut index: usize) -> Vec<usize> {
    let mut found = vec![0; dims.len()];
    for axis in (0..dims.len()).rev() {
        found[axis] = index % dims[axis];
        index /= dims[axis];
    }
    found
}

fn size(dims: &[usize]) -> usize {
    dims.iter().product()
}

/// Different numbers, so that an element from the wrong place is seen.
fn numbers(count: usize, start: i64) -> Vec<i64> {
    (start..).take(count).collect()
}

fn dims() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![3 => Just(1), 1 => Just(0), 5 => 2usize..5], 0..5)
}

/// A shape, and another that mostly goes with it: the same axes, some of size one, some missing.
fn pair() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    let kindred = dims().prop_flat_map(|dims| {
        let ones = prop::collection::vec(any::<bool>(), dims.len());
        (Just(dims.clone()), ones, 0..=dims.len()).prop_map(|(dims, ones, skip)| {
            let other = dims.iter().zip(&ones).map(|(&dim, &one)| if one { 1 } else { dim }).skip(skip).collect();
            (dims, other)
        })
    });
    prop_oneof![4 => kindred, 1 => (dims(), dims())]
}

proptest! {
    #[test]
    fn pairs_meet_as_the_rule_says((lhs, rhs) in pair(), swapped in any::<bool>()) {
        let (a, b) = if swapped { (rhs, lhs) } else { (lhs, rhs) };
        let shape = Broadcast::new(&a, &b);
        prop_assert_eq!(shape.as_ref().map(|shape| shape.out_dims().to_vec()), common(&a, &b));
        let Some(shape) = shape else { return Ok(()) };
        let out = shape.out_dims().to_vec();
        let (x, y) = (numbers(size(&a), 0), numbers(size(&b), 10_000));
        let expected: Vec<(i64, i64)> = (0..size(&out))
            .map(|i| coordinates(&out, i))
            .map(|at| (x[place(&a, &at)], y[place(&b, &at)]))
            .collect();
        let mut found = vec![(-1, -1); size(&out)];
        broadcast(&Pool::new(1), 1.0, &shape, &x, &y, &mut found, |x, y| (x, y));
        prop_assert_eq!(&found, &expected);
        let sums: Vec<i64> = expected.iter().map(|(x, y)| x - 2 * y).collect();
        if shape.is_whole(0) && x.len() == sums.len() {
            let mut left = x.clone();
            broadcast_in_place_left(&Pool::new(1), 1.0, &shape, &mut left, &y, |x, y| x - 2 * y);
            prop_assert_eq!(&left, &sums);
        }
        if shape.is_whole(1) && y.len() == sums.len() {
            let mut right = y.clone();
            broadcast_in_place_right(&Pool::new(1), 1.0, &shape, &x, &mut right, |x, y| x - 2 * y);
            prop_assert_eq!(&right, &sums);
        }
    }

    #[test]
    fn one_operand_is_repeated((whole, part) in pair()) {
        prop_assume!(common(&whole, &part).as_ref() == Some(&whole));
        let src = numbers(size(&part), 0);
        let expected: Vec<i64> = (0..size(&whole)).map(|i| src[place(&part, &coordinates(&whole, i))]).collect();
        let mut found = vec![-1; size(&whole)];
        broadcast_to(&Pool::new(2), &part, &whole, &src, &mut found);
        prop_assert_eq!(found, expected);
    }
}

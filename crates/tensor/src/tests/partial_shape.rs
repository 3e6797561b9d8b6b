//! Static shapes, checked against the sets of shapes they describe.

use crate::{PartialShape, Shape};
use proptest::prelude::*;

/// Static shapes of rank up to three with dimensions up to two.
fn partial() -> impl Strategy<Value = PartialShape> {
    prop_oneof![
        1 => Just(PartialShape::unknown()),
        5 => prop::collection::vec(-1i64..3, 0..4).prop_map(|dims| PartialShape::new(&dims)),
    ]
}

/// Every shape that such descriptions can distinguish.
fn shapes() -> Vec<Shape> {
    let mut shapes = vec![Shape::scalar()];
    let mut last = shapes.clone();
    for _ in 0..3 {
        let longer =
            |shape: &Shape| (0..4).map(|dim| shape.iter().copied().chain([dim]).collect()).collect::<Vec<Shape>>();
        last = last.iter().flat_map(longer).collect();
        shapes.extend(last.clone());
    }
    shapes
}

proptest! {
    #[test]
    fn a_merge_admits_what_both_admit(a in partial(), b in partial()) {
        match a.merge(&b) {
            Ok(merged) => for shape in shapes() {
                prop_assert_eq!(merged.accepts(&shape), a.accepts(&shape) && b.accepts(&shape));
            },
            Err(_) => prop_assert!(!shapes().iter().any(|shape| a.accepts(shape) && b.accepts(shape))),
        }
        prop_assert_eq!(a.compatible(&b), a.merge(&b).is_ok());
        prop_assert_eq!(a.merge(&b).ok(), b.merge(&a).ok());
    }

    #[test]
    fn a_known_shape_admits_itself_alone(dims in prop::collection::vec(0usize..4, 0..4)) {
        let shape = Shape::from(dims);
        let partial = PartialShape::from(&shape);
        prop_assert_eq!(partial.known(), Some(shape.clone()));
        for other in shapes() {
            prop_assert_eq!(partial.accepts(&other), other == shape);
        }
    }

    #[test]
    fn element_counts_never_overflow(dims in prop::collection::vec(any::<i64>(), 0..6)) {
        let product = dims.iter().map(|&dim| i128::from(dim)).try_fold(1i128, i128::checked_mul);
        match Shape::checked(&dims) {
            Ok(shape) => prop_assert_eq!(Some(shape.checked_elements().unwrap() as i128), product.or(Some(0))),
            Err(_) => prop_assert!(dims.iter().any(|&dim| dim < 0) || product.is_none_or(|p| p > i128::from(i64::MAX))),
        }
    }
}

//! Shape functions that many ops share.

use crate::shapes::{broadcast_shapes, integers};
use tensor::{PartialShape, Tensor};

#[test]
fn shapes_are_broadcast_from_the_last_dimension() {
    let cases: [(&[i64], &[i64], Option<&[i64]>); 7] = [
        (&[2, 3], &[2, 3], Some(&[2, 3])),
        (&[2, 3], &[3], Some(&[2, 3])),
        (&[2, 1], &[1, 3], Some(&[2, 3])),
        (&[], &[4], Some(&[4])),
        (&[-1, 1], &[5], Some(&[-1, 5])),
        (&[-1], &[5], Some(&[5])),
        (&[2], &[3], None),
    ];
    for (a, b, expected) in cases {
        for (a, b) in [(a, b), (b, a)] {
            let found = broadcast_shapes(&PartialShape::new(a), &PartialShape::new(b));
            assert_eq!(found.ok(), expected.map(PartialShape::new), "{a:?} and {b:?}");
        }
    }
    let unknown = broadcast_shapes(&PartialShape::unknown(), &PartialShape::new(&[2])).unwrap();
    assert_eq!(unknown, PartialShape::unknown());
}

#[test]
fn integers_of_any_width_are_read() {
    assert_eq!(integers(&Tensor::vector(&[1i32, -2])).unwrap(), [1, -2]);
    assert_eq!(integers(&Tensor::vector(&[200u8])).unwrap(), [200]);
    assert!(integers(&Tensor::scalar(1f32)).is_err());
}

//! Values found by type.

use crate::Extensions;
use std::sync::Arc;

#[test]
fn a_value_is_found_by_its_type() {
    let extensions = Extensions::new().with(1i32).with("text".to_string());
    assert_eq!(extensions.get::<i32>(), Some(&1));
    assert_eq!(extensions.get::<String>().map(String::as_str), Some("text"));
    assert_eq!(extensions.get::<i64>(), None);
    assert_eq!(format!("{extensions:?}"), "Extensions(2 values)");
}

#[test]
fn a_second_value_of_a_type_replaces_the_first() {
    let mut extensions = Extensions::new().with(1i32);
    let before = extensions.clone();
    extensions.insert(2i32);
    assert_eq!((before.get::<i32>(), extensions.get::<i32>()), (Some(&1), Some(&2)));
}

#[test]
fn clones_share_their_values() {
    let extensions = Extensions::new().with(vec![1]);
    let [a, b] = [extensions.clone(), extensions].map(|extensions| extensions.get_shared::<Vec<i32>>().unwrap());
    assert!(Arc::ptr_eq(&a, &b));
}

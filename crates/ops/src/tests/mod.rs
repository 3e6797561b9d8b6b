//! Tests of the tables as a whole.

#[test]
fn every_row_can_be_read() {
    assert!(crate::registry().names().count() > 0);
}

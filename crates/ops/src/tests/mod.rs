//! Tests of the tables as a whole, and of ops that only make sense together.

mod accumulator;
mod approx_top_k;
mod await_value;
mod batch;
mod channels_first;
mod csr;
mod debug;
mod evaluate;
mod facts;
mod fft;
mod group;
mod lookup;
mod members;
mod no_case;
mod optional;
mod pace;
mod queue;
mod ragged;
mod reader;
mod sdca;
mod staging;
mod tensor_array;
mod tensor_list;
mod top_k_unique;
mod work;

#[test]
fn every_row_can_be_read() {
    let registry = crate::registry();
    assert!(registry.names().count() > 0);
    registry.check().expect("every row");
}

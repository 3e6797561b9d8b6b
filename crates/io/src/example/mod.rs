//! Example messages: the named features of training data in record files.

mod json;
mod reading;

pub use json::example_from_json;
pub use reading::{Entry, Feature, bytes, entries, feature, floats, integers, rows, sequence_entries};

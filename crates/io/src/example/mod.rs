//! Example messages: the named features of training data in record files.

mod json;
mod message;
mod reading;

pub use json::example_from_json;
pub(crate) use json::{from_base64, to_base64};
pub use message::{Example, SequenceExample, Values};
pub use reading::{Entry, Feature, bytes, entries, feature, floats, integers, rows, sequence_entries};

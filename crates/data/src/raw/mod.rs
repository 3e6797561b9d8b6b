//! Raw builders.

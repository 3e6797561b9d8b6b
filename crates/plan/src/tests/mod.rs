//! Tests of planning.

mod partition;
mod text;

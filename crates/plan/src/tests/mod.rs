//! Tests of planning.

mod lower;
mod partition;
mod text;

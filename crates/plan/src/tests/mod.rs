//! Tests of planning.

mod lower;
mod partition;
mod place;
mod text;

//! Tests of planning.

mod lower;
mod lower_limits;
mod partition;
mod place;
mod text;

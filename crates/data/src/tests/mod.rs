//! Tests of input pipelines.

mod budget;

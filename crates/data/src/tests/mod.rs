//! Tests of input pipelines.

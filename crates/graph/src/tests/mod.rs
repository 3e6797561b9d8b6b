//! Tests of graphs.

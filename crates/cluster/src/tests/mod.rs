//! Tests of master and worker.

//! Tests of input pipelines.

mod budget;
mod graphs;
mod requests;
mod task;
mod windows;

//! Tests of input pipelines.

mod budget;
mod requests;
mod task;
mod windows;

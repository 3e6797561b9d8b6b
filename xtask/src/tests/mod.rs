//! The rules of this repository that a program can check.

mod architecture;
mod examples;
mod files;
mod manifests;
mod statements;

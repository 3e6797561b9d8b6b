//! The rules of this repository that a program can check, and the tests of its automation.

mod architecture;
mod dist;
mod examples;
mod files;
mod manifests;
mod op_names;
mod paths;
mod quick;
mod statements;

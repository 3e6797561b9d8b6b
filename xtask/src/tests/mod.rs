//! The rules of the repository, checked.

mod architecture;
mod examples;
mod files;
mod statements;

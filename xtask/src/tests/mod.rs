//! The rules of the repository, checked.

mod architecture;
mod files;
mod statements;

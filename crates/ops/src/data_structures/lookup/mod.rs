//! Lookup tables: from keys to values.

pub mod access;
mod dense;
mod file;
pub mod fill;
mod map;
mod state;
pub mod table;

//! The rules of the house, checked.

mod architecture;
mod files;
mod op_names;

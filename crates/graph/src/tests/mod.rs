//! Tests of graphs.

mod device;
mod fuzz;
mod op_text;
mod wire;

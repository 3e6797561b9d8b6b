//! Chains of elementwise operations on `f32` in one pass: a tile goes through all of them before the next is read.

mod op;
mod program;
mod run;

pub use op::{Binary, Unary};
pub use program::{Instruction, Program, Register};
pub use run::{Operand, run};

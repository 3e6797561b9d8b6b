//! Tensors in order: stacks, arrays that loops write, lists that are values themselves.

use op::Op;

pub mod arithmetic;
pub mod list_item;
pub mod list_join;
pub mod list_spread;
pub mod stack;
mod step_resource;
pub mod tensor_array;
mod tensor_array_kernels;
mod tensor_array_slots;
pub mod tensor_list;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[list_item::OPS, list_join::OPS, list_spread::OPS, stack::OPS, tensor_array::OPS];

//! Iterators as resources of a device, and the ops that create, run and save them.

mod get_next;
mod handle;
mod make;
mod one_shot;
mod resource;
mod running;
mod serialize;

use op::Op;

pub use resource::IteratorResource;
pub use running::{Answer, Running};

pub(crate) const TABLES: &[&[Op]] = &[get_next::OPS, handle::OPS, make::OPS, one_shot::OPS, serialize::OPS];

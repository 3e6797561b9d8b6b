//! Iterators as resources of a device, and the ops that create, run and save them.

mod about;
mod anonymous;
mod compute;
mod element_at;
pub(crate) mod get_next;
mod handle;
mod make;
mod multi_device;
mod one_shot;
mod reduce;
mod resource;
mod running;
mod serialize;
mod sharded;
mod single;

use op::Op;

pub use compute::{Compute, compute};
pub(crate) use get_next::element_shapes;
pub use resource::IteratorResource;
pub use running::{Answer, Running};
pub use sharded::MultiDeviceIterator;

pub(crate) const TABLES: &[&[Op]] = &[
    about::OPS,
    anonymous::OPS,
    element_at::OPS,
    get_next::OPS,
    handle::OPS,
    make::OPS,
    multi_device::OPS,
    one_shot::OPS,
    reduce::OPS,
    serialize::OPS,
    single::OPS,
];

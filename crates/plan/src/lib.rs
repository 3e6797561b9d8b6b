//! Graph in, graphs out: prune, place, partition.
#![forbid(unsafe_code)]

mod control_devices;
mod control_loops;
mod exchange;
mod frames;
mod lower;
mod partition;
mod place;
mod prune;

pub use lower::{LowerOptions, lower};
pub use partition::{Part, partition};
pub use place::{Device, Placement, place};
pub use prune::{Signature, StepGraph, StepNode, prune};

#[cfg(test)]
mod tests;

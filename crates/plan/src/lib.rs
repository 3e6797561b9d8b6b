//! Plans a step: prunes, places and partitions graphs.
//!
//! Everything here is a pure function from graphs to graphs: no clock, no thread, no randomness, no IO. Running the
//! parts is the task of `exec` and `cluster`. A step is planned in this order:
//!
//! 1. [`lower`] replaces conditionals, and functional control flow that spans tasks, by Switch, Merge and loops.
//! 2. [`place`] chooses a device for every node.
//! 3. [`prune`] keeps what the fetches and targets of a step need.
//! 4. [`partition`] cuts the rest into one graph per task, joined by `_Send` and `_Recv`.
#![forbid(unsafe_code)]

mod control_devices;
mod control_loops;
mod exchange;
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

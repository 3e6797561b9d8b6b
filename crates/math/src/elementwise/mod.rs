//! Loops over elements: maps, zips and broadcasts of a closure given by the caller.
//!
//! `cost` estimates the nanoseconds one element takes on one thread; it decides whether splitting over threads pays
//! off.

mod broadcast;
mod map;
mod shape;
mod zip;

pub use broadcast::{broadcast, broadcast_in_place_left, broadcast_in_place_right, broadcast_to, select};
pub(crate) use map::Map;
pub use map::{fill, map, map_guarded, map_in_place};
pub use shape::Broadcast;
pub(crate) use shape::Visit;
pub(crate) use zip::Zip;
pub use zip::{zip, zip_in_place_left, zip_in_place_right, zip_scalar_left, zip_scalar_right};

/// Costs of common loops, in nanoseconds for an element.
pub mod cost {
    /// Read, one or two simple instructions, write: bound by memory.
    pub const SIMPLE: f32 = 0.3;
    /// A vectorised elementary function of `f32`, or a division.
    pub const FUNCTION: f32 = 1.0;
    /// A function that is computed element by element.
    pub const SCALAR: f32 = 15.0;
}

/// The element type of arrays.
pub trait Element: Copy + Send + Sync {}

impl<T: Copy + Send + Sync> Element for T {}

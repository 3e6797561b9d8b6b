//! Values that the program hands to kernels, found by their type.

use rustc_hash::FxHashMap;
use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

/// A map from types to values, with at most one value of each type.
///
/// A program uses it to hand kernels what this crate knows nothing about, such as file systems. Clones share the map, so
/// that a clone costs no more than one reference count, and an empty map allocates nothing.
///
/// ```
/// # use flowgrid_op::Extensions;
/// let extensions = Extensions::new().with(7u32).with("text");
/// assert_eq!(extensions.get::<u32>(), Some(&7));
/// assert_eq!(extensions.get::<f32>(), None);
/// ```
#[derive(Clone, Default)]
pub struct Extensions(Option<Arc<Map>>);

type Map = FxHashMap<TypeId, Arc<dyn Any + Send + Sync>>;

impl Extensions {
    /// An empty map.
    pub fn new() -> Extensions {
        Extensions::default()
    }

    /// The same map with this value, which replaces a value of the same type.
    pub fn with<T: Any + Send + Sync>(mut self, value: T) -> Extensions {
        self.insert(value);
        self
    }

    /// Adds a value, or replaces the value of the same type. Other clones of the map do not change.
    pub fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        Arc::make_mut(self.0.get_or_insert_default()).insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// The value of a type, if there is one.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.as_ref()?.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// As `get`, for an owner that outlives the map.
    pub fn get_shared<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.as_ref()?.get(&TypeId::of::<T>())?.clone().downcast().ok()
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extensions({} values)", self.0.as_ref().map_or(0, |values| values.len()))
    }
}

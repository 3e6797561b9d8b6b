//! What a process gives all its devices: values found by their type, which no reset forgets.

use rustc_hash::FxHashMap;
use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

/// Values by type, such as the file systems of a process. Clones share them.
#[derive(Clone, Default)]
pub struct Given {
    values: FxHashMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

impl Given {
    /// One value.
    pub fn of<T: Any + Send + Sync>(value: T) -> Given {
        Given::default().with(value)
    }

    /// The same, and this value in place of one of its type.
    pub fn with<T: Any + Send + Sync>(mut self, value: T) -> Given {
        self.values.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    /// The value of a type, if there is one.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.values.get(&TypeId::of::<T>())?.clone().downcast().ok()
    }
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} given values", self.values.len())
    }
}

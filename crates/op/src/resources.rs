//! Named state of a device: variables, queues, tables, by container, type and name.

use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use status::{Result, already_exists, not_found};
use std::any::{Any, TypeId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Resources of one device. They outlive sessions, and end with their container.
pub struct Resources {
    default_container: String,
    found: RwLock<FxHashMap<(String, TypeId), Names>>,
    unique: AtomicU64,
}

type Names = FxHashMap<String, Arc<dyn Any + Send + Sync>>;

impl Resources {
    /// No resources yet; a container without a name is `default_container`.
    pub fn new(default_container: &str) -> Resources {
        Resources {
            default_container: default_container.to_string(),
            found: RwLock::default(),
            unique: AtomicU64::new(0),
        }
    }

    /// The container that `name` means: itself, or the default if it is empty.
    pub fn container<'a>(&'a self, name: &'a str) -> &'a str {
        if name.is_empty() { &self.default_container } else { name }
    }

    /// The resource of this type and name.
    pub fn get<T: Any + Send + Sync>(&self, container: &str, name: &str) -> Option<Arc<T>> {
        let key = (self.container(container).to_string(), TypeId::of::<T>());
        let found = self.found.read();
        let resource = found.get(&key)?.get(name)?.clone();
        resource.downcast().ok()
    }

    /// The resource of this type and name, or an error that names it; `type_name` is TensorFlow's.
    pub fn find<T: Any + Send + Sync>(&self, container: &str, name: &str, type_name: &str) -> Result<Arc<T>> {
        self.get(container, name)
            .ok_or_else(|| not_found!("Resource {}/{name}/{type_name} does not exist.", self.container(container)))
    }

    /// The resource of this type and name, made if it is not there.
    pub fn get_or_create<T: Any + Send + Sync>(
        &self,
        container: &str,
        name: &str,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        if let Some(resource) = self.get(container, name) {
            return Ok(resource);
        }
        let key = (self.container(container).to_string(), TypeId::of::<T>());
        let mut found = self.found.write();
        let names = found.entry(key).or_default();
        if let Some(resource) = names.get(name).cloned().and_then(|resource| resource.downcast().ok()) {
            return Ok(resource);
        }
        let resource = Arc::new(make()?);
        names.insert(name.to_string(), resource.clone());
        Ok(resource)
    }

    /// Adds a resource; an error if there is one of this type and name.
    pub fn create<T: Any + Send + Sync>(&self, container: &str, name: &str, resource: Arc<T>) -> Result<()> {
        let key = (self.container(container).to_string(), TypeId::of::<T>());
        let mut found = self.found.write();
        let names = found.entry(key).or_default();
        if names.contains_key(name) {
            return Err(already_exists!("Resource {}/{name} already exists.", self.container(container)));
        }
        names.insert(name.to_string(), resource);
        Ok(())
    }

    /// Forgets a resource; false if there was none.
    pub fn remove<T: Any + Send + Sync>(&self, container: &str, name: &str) -> bool {
        let key = (self.container(container).to_string(), TypeId::of::<T>());
        self.found.write().get_mut(&key).is_some_and(|names| names.remove(name).is_some())
    }

    /// Forgets everything in a container.
    pub fn clear(&self, container: &str) {
        let container = self.container(container);
        self.found.write().retain(|key, _| key.0 != container);
    }

    /// A name for a private resource of a node: `_<number>_<node>`.
    pub fn unique_name(&self, node: &str) -> String {
        format!("_{}_{node}", self.unique.fetch_add(1, Ordering::Relaxed))
    }
}

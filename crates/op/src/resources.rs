//! Named state of a device: variables, queues, tables, by container, type and name.

use crate::{Extensions, OnceCallback, ReferenceVariable, Variable, VariableKey, VariableObserver};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use status::{Error, Result, already_exists, not_found};
use std::any::{Any, TypeId};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The container in which a device keeps the counters of its task, as int64 variables that any client can read:
/// `steps`, `bytes_in`, `bytes_out`, `bytes_saved`, `bytes_restored`. Transfers of nodes whose names begin with
/// `flowgrid/` are not counted, so that reading the counters does not change them.
pub const COUNTERS: &str = "flowgrid";

/// The container of resources that can be found only through the handle returned when they were created.
pub const ANONYMOUS: &str = "Anonymous";

/// Resources of one device. They outlive sessions and are removed with their container.
pub struct Resources {
    default_container: String,
    found: RwLock<FxHashMap<String, Container>>,
    unique: AtomicU64,
    observer: OnceLock<Arc<dyn VariableObserver>>,
    extensions: Extensions,
    awaited: Mutex<Vec<Awaited>>,
}

/// A pending callback for the creation of a resource of this type, container and name.
struct Awaited {
    key: (TypeId, String, String),
    call: OnceCallback,
}

type Container = FxHashMap<TypeId, Names>;
type Names = FxHashMap<String, Arc<dyn Any + Send + Sync>>;

impl Resources {
    /// No resources; an empty container name means `default_container`.
    pub fn new(default_container: &str) -> Resources {
        Resources::with_extensions(default_container, Extensions::default())
    }

    /// No resources, on a device whose kernels find these extensions.
    pub fn with_extensions(default_container: &str, extensions: Extensions) -> Resources {
        Resources {
            extensions,
            default_container: default_container.to_string(),
            found: RwLock::default(),
            unique: AtomicU64::new(0),
            observer: OnceLock::new(),
            awaited: Mutex::default(),
        }
    }

    /// From now on the observer is notified of the variables of this device, unless it has an observer. Must be called
    /// before any variable is created.
    pub fn observe_variables(&self, observer: Arc<dyn VariableObserver>) {
        let _ = self.observer.set(observer);
    }

    /// Tells the observer of this device, if there is one, that a variable was created, unless it knows the variable or
    /// `is_found_by_name` is false for its container. Kernels call it before they change the variable.
    pub fn observe_variable(&self, reference: bool, container: &str, name: &str, variable: &Arc<Variable>) {
        let (Some(observer), false) = (self.observer.get(), variable.is_observed()) else { return };
        let container = self.container(container);
        if !Resources::is_found_by_name(container) {
            return;
        }
        let found = self.found.read(); // the lock keeps the variable from being removed before the observer knows it
        let id = if reference { TypeId::of::<ReferenceVariable>() } else { TypeId::of::<Variable>() };
        let resource = found.get(container).and_then(|types| types.get(&id)?.get(name));
        if resource.and_then(variable_of).is_some_and(|held| std::ptr::eq(held, &**variable)) {
            let key = VariableKey { reference, container: container.to_string(), name: name.to_string() };
            variable.observe(key, observer);
        }
    }

    /// The error that keeps the observer of variables from following changes, if any.
    pub fn observer_failure(&self) -> Option<Error> {
        self.observer.get()?.failure()
    }

    /// True if the resources of this container can be found by name, also after a restart; false for those behind
    /// anonymous handles and for the counters of the task.
    pub fn is_found_by_name(container: &str) -> bool {
        ![COUNTERS, ANONYMOUS].contains(&container)
    }

    /// Values that the program hands to the kernels of the device.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// The name of a container: `name`, or the default if it is empty.
    pub fn container<'a>(&'a self, name: &'a str) -> &'a str {
        if name.is_empty() { &self.default_container } else { name }
    }

    /// The resource of this type and name.
    pub fn get<T: Any + Send + Sync>(&self, container: &str, name: &str) -> Option<Arc<T>> {
        let found = self.found.read();
        let resource = found.get(self.container(container))?.get(&TypeId::of::<T>())?.get(name)?.clone();
        resource.downcast().ok()
    }

    /// The resource of this type and name, or an error that names it; `type_name` is TensorFlow's.
    pub fn find<T: Any + Send + Sync>(&self, container: &str, name: &str, type_name: &str) -> Result<Arc<T>> {
        self.get(container, name).ok_or_else(|| self.missing(container, name, type_name))
    }

    fn missing(&self, container: &str, name: &str, type_name: &str) -> Error {
        let container = self.container(container);
        if self.found.read().contains_key(container) {
            return not_found!("Resource {container}/{name}/{type_name} does not exist.");
        }
        not_found!("Container {container} does not exist. (Could not find resource: {container}/{name})")
    }

    /// The resource of this type and name, created if missing.
    pub fn get_or_create<T: Any + Send + Sync>(
        &self,
        container: &str,
        name: &str,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        if let Some(resource) = self.get(container, name) {
            return Ok(resource);
        }
        let mut found = self.found.write();
        let names = self.names::<T>(&mut found, container);
        if let Some(resource) = names.get(name).cloned().and_then(|resource| resource.downcast().ok()) {
            return Ok(resource);
        }
        let resource = Arc::new(make()?);
        names.insert(name.to_string(), resource.clone());
        drop(found);
        self.notify_created::<T>(container, name);
        Ok(resource)
    }

    /// Adds a resource; an error if there is one of this type and name.
    pub fn create<T: Any + Send + Sync>(&self, container: &str, name: &str, resource: Arc<T>) -> Result<()> {
        let mut found = self.found.write();
        let names = self.names::<T>(&mut found, container);
        if names.contains_key(name) {
            return Err(already_exists!("Resource {}/{name} already exists.", self.container(container)));
        }
        names.insert(name.to_string(), resource);
        drop(found);
        self.notify_created::<T>(container, name);
        Ok(())
    }

    /// Calls back when a resource of this type and name exists.
    pub fn when_created<T: Any + Send + Sync>(&self, container: &str, name: &str, call: OnceCallback) {
        let key = (TypeId::of::<T>(), self.container(container).to_string(), name.to_string());
        {
            let mut awaited = self.awaited.lock();
            awaited.retain(|awaited| awaited.call.is_open());
            awaited.push(Awaited { key, call: call.clone() });
        }
        // It may have been created before the callback was registered.
        if self.get::<T>(container, name).is_some() {
            call.run();
        }
    }

    fn notify_created<T: Any>(&self, container: &str, name: &str) {
        let mut awaited = self.awaited.lock();
        if awaited.is_empty() {
            return;
        }
        let key = (TypeId::of::<T>(), self.container(container).to_string(), name.to_string());
        let created: Vec<Awaited> = awaited.extract_if(.., |awaited| awaited.key == key).collect();
        drop(awaited);
        created.iter().for_each(|awaited| awaited.call.run());
    }

    /// All resources of a type with their names, in the order of their containers and names.
    pub fn all<T: Any + Send + Sync>(&self) -> Vec<(String, Arc<T>)> {
        let found = self.found.read();
        let mut all: Vec<(&String, &String, Arc<T>)> = Vec::new();
        for (container, types) in found.iter() {
            let names = types.get(&TypeId::of::<T>()).into_iter().flatten();
            all.extend(names.filter_map(|(name, resource)| Some((container, name, resource.clone().downcast().ok()?))));
        }
        all.sort_unstable_by_key(|&(container, name, _)| (container, name));
        all.into_iter().map(|(_, name, resource)| (name.clone(), resource)).collect()
    }

    fn names<'a, T: Any>(&self, found: &'a mut FxHashMap<String, Container>, container: &str) -> &'a mut Names {
        let container = self.container(container);
        found.entry(container.to_string()).or_default().entry(TypeId::of::<T>()).or_default()
    }

    /// Removes a resource; false if there was none.
    pub fn remove<T: Any + Send + Sync>(&self, container: &str, name: &str) -> bool {
        self.take::<T>(container, name).is_some()
    }

    fn take<T: Any>(&self, container: &str, name: &str) -> Option<Arc<dyn Any + Send + Sync>> {
        let taken = {
            let mut found = self.found.write();
            found.get_mut(self.container(container))?.get_mut(&TypeId::of::<T>())?.remove(name)
        };
        taken.inspect(notify_removed)
    }

    /// Removes the resources of this name, whatever their type; false if there were none.
    pub fn remove_any(&self, container: &str, name: &str) -> bool {
        let removed: Vec<_> = {
            let mut found = self.found.write();
            let Some(types) = found.get_mut(self.container(container)) else { return false };
            types.values_mut().filter_map(|names| names.remove(name)).collect()
        };
        removed.iter().for_each(notify_removed);
        !removed.is_empty() // dropped outside the lock: a resource may hold others
    }

    /// True if a resource was ever created in the container.
    pub fn has_container(&self, container: &str) -> bool {
        self.found.read().contains_key(self.container(container))
    }

    /// Removes all resources of a container.
    pub fn clear(&self, container: &str) {
        let mut found = self.found.write();
        let removed = found.remove(self.container(container));
        if let Some(observer) = self.observer.get() {
            observer.cleared(self.container(container)); // still locked: before others of these names are created
        }
        drop(found);
        drop(removed); // outside the lock: a resource may hold others
    }

    /// Removes all resources, for a device that ends: they may refer to the device.
    pub fn clear_all(&self) {
        let removed = std::mem::take(&mut *self.found.write());
        drop(removed); // outside the lock: a resource may hold others
    }

    /// A name for a private resource of a node: `_<number>_<node>`.
    pub fn unique_name(&self, node: &str) -> String {
        format!("_{}_{node}", self.unique.fetch_add(1, Ordering::Relaxed))
    }
}

/// Tells the observer that a resource was removed, if it is a variable.
fn notify_removed(resource: &Arc<dyn Any + Send + Sync>) {
    if let Some(variable) = variable_of(resource) {
        variable.notify_removed();
    }
}

/// The variable inside a resource of either kind.
fn variable_of(resource: &Arc<dyn Any + Send + Sync>) -> Option<&Variable> {
    let reference = || resource.downcast_ref::<ReferenceVariable>().map(|reference| &*reference.0);
    resource.downcast_ref::<Variable>().or_else(reference)
}

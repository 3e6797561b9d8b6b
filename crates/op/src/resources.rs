//! Named state of a device: variables, queues, tables, by container, type and name.

use crate::{Extensions, Keeper, OneCall, ReferenceVariable, Variable, VariableKey};
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
    keeper: OnceLock<Arc<dyn Keeper>>,
    extensions: Extensions,
    awaited: Mutex<Vec<Awaited>>,
}

/// A pending callback for the creation of a resource of this type, container and name.
struct Awaited {
    key: (TypeId, String, String),
    call: OneCall,
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
            keeper: OnceLock::new(),
            awaited: Mutex::default(),
        }
    }

    /// Makes the variables of this device durable and restores those that were stored before. Must be called before
    /// any variable is created.
    pub fn keep_variables(&self, keeper: Arc<dyn Keeper>) -> Result<()> {
        for (key, value) in keeper.orphans() {
            if !key.reference && can_be_found(&key.container) {
                let variable = Arc::new(Variable::new(&key.name, value.dtype()));
                self.create(&key.container, &key.name, variable.clone())?;
                variable.keep(key, &keeper);
            }
        }
        let _ = self.keeper.set(keeper);
        Ok(())
    }

    /// Makes a variable durable, if this device has durable variables and the variable can be found again by name.
    /// Must be called before it is changed.
    pub fn adopt(&self, reference: bool, container: &str, name: &str, variable: &Arc<Variable>) {
        let (Some(keeper), false) = (self.keeper.get(), variable.is_kept()) else { return };
        let container = self.container(container);
        if !can_be_found(container) {
            return;
        }
        let found = self.found.read(); // the lock keeps the variable from being removed before the keeper knows it
        let id = if reference { TypeId::of::<ReferenceVariable>() } else { TypeId::of::<Variable>() };
        let resource = found.get(container).and_then(|types| types.get(&id)?.get(name));
        if resource.and_then(variable_of).is_some_and(|held| std::ptr::eq(held, &**variable)) {
            let key = VariableKey { reference, container: container.to_string(), name: name.to_string() };
            variable.keep(key, keeper);
        }
    }

    /// The error that prevents variables from being stored durably, if any.
    pub fn keeping_failed(&self) -> Option<Error> {
        self.keeper.get()?.failure()
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
        self.tell::<T>(container, name);
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
        self.tell::<T>(container, name);
        Ok(())
    }

    /// Calls back when a resource of this type and name exists.
    pub fn when_made<T: Any + Send + Sync>(&self, container: &str, name: &str, call: OneCall) {
        let key = (TypeId::of::<T>(), self.container(container).to_string(), name.to_string());
        {
            let mut awaited = self.awaited.lock();
            awaited.retain(|awaited| awaited.call.is_open());
            awaited.push(Awaited { key, call: call.clone() });
        }
        // It may have been created before the callback was registered.
        if self.get::<T>(container, name).is_some() {
            call.make();
        }
    }

    fn tell<T: Any>(&self, container: &str, name: &str) {
        let mut awaited = self.awaited.lock();
        if awaited.is_empty() {
            return;
        }
        let key = (TypeId::of::<T>(), self.container(container).to_string(), name.to_string());
        let told: Vec<Awaited> = awaited.extract_if(.., |awaited| awaited.key == key).collect();
        drop(awaited);
        told.iter().for_each(|awaited| awaited.call.make());
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
        taken.inspect(lose)
    }

    /// Removes the resources of this name, whatever their type; false if there were none.
    pub fn remove_any(&self, container: &str, name: &str) -> bool {
        let removed: Vec<_> = {
            let mut found = self.found.write();
            let Some(types) = found.get_mut(self.container(container)) else { return false };
            types.values_mut().filter_map(|names| names.remove(name)).collect()
        };
        removed.iter().for_each(lose);
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
        if let Some(keeper) = self.keeper.get() {
            keeper.forget(self.container(container)); // before there can be others of these names
        }
        drop(found);
        drop(removed); // outside the lock: a resource may hold others
    }

    /// A name for a private resource of a node: `_<number>_<node>`.
    pub fn unique_name(&self, node: &str) -> String {
        format!("_{}_{node}", self.unique.fetch_add(1, Ordering::Relaxed))
    }
}

/// True if variables of this container can be found by name after a restart.
fn can_be_found(container: &str) -> bool {
    ![COUNTERS, ANONYMOUS].contains(&container)
}

/// Marks a removed resource, so that its variable is no longer stored.
fn lose(resource: &Arc<dyn Any + Send + Sync>) {
    if let Some(variable) = variable_of(resource) {
        variable.lose();
    }
}

/// The variable inside a resource of either kind.
fn variable_of(resource: &Arc<dyn Any + Send + Sync>) -> Option<&Variable> {
    let reference = || resource.downcast_ref::<ReferenceVariable>().map(|reference| &*reference.0);
    resource.downcast_ref::<Variable>().or_else(reference)
}

//! Looks up the resource behind a handle: it must be on this device and of the expected type.

use crate::{Resources, Setup};
use graph::hash64;
use status::{Result, invalid, not_found};
use std::any::Any;
use std::sync::Arc;
use tensor::{DType, PartialShape, ResourceHandle, Tensor};

/// State that resource handles can refer to.
pub trait Resource: Any + Send + Sync {
    /// TensorFlow's (mangled C++) name of the type, as it stands in handles.
    const TYPE_NAME: &'static str;
}

/// The devices of a task, for ops that may use the resources of all of them.
pub trait Siblings: Send + Sync {
    /// The resources of the device with this full name, if it is one of the task.
    fn resources_of(&self, device: &str) -> Option<Arc<Resources>>;
}

/// A device as its kernels see it: its name and its resources.
#[derive(Clone)]
pub struct Home {
    device: Arc<str>,
    resources: Arc<Resources>,
    /// In the body of a function, the other devices of the task: the handles that are passed to a function decide where
    /// its ops run, and all devices share the memory of the task.
    siblings: Option<Arc<dyn Siblings>>,
}

impl Home {
    /// The device a node runs on.
    pub fn of(setup: &Setup<'_>) -> Home {
        let (resources, siblings) = (setup.resources().clone(), setup.siblings().cloned());
        Home { device: setup.device().into(), resources, siblings }
    }

    /// Its full name.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The resources of the device.
    pub fn resources(&self) -> &Arc<Resources> {
        &self.resources
    }

    /// The handle of a resource on this device, a scalar.
    pub fn handle<T: Resource>(
        &self,
        container: &str,
        name: &str,
        values: Vec<(DType, PartialShape)>,
    ) -> ResourceHandle {
        ResourceHandle {
            device: self.device.to_string(),
            container: self.resources.container(container).to_string(),
            name: name.to_string(),
            hash_code: hash64(T::TYPE_NAME.as_bytes()),
            type_name: T::TYPE_NAME.to_string(),
            values,
        }
    }

    /// The resource behind a handle.
    pub fn find<T: Resource>(&self, handle: &ResourceHandle) -> Result<Arc<T>> {
        check::<T>(handle, self)?.find(&handle.container, &handle.name, T::TYPE_NAME)
    }

    /// The resource behind a handle, created if missing.
    pub fn find_or_create<T: Resource>(
        &self,
        handle: &ResourceHandle,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        check::<T>(handle, self)?.get_or_create(&handle.container, &handle.name, make)
    }

    /// Removes the resource behind a handle, whatever its type.
    pub fn destroy(&self, handle: &ResourceHandle) -> Result<()> {
        let resources = self.resources_of(handle)?;
        if resources.remove_any(&handle.container, &handle.name) {
            return Ok(());
        }
        let container = resources.container(&handle.container);
        if !resources.has_container(container) {
            return Err(not_found!("Container {container} does not exist."));
        }
        Err(not_found!("Resource {container}/{}/<unknown> does not exist.", handle.name))
    }

    /// The resources of the device that a handle names: this one or, in a function, another of its task.
    pub fn resources_of(&self, handle: &ResourceHandle) -> Result<Arc<Resources>> {
        if handle.device == *self.device {
            return Ok(self.resources.clone());
        }
        let found = self.siblings.as_ref().and_then(|siblings| siblings.resources_of(&handle.device));
        found.ok_or_else(|| {
            let (name, device) = (&handle.name, &handle.device);
            invalid!("Trying to access resource {name} located in device {device} from device {}", self.device)
        })
    }
}

/// The resources of the device that a handle names, if the handle is of this type.
fn check<T: Resource>(handle: &ResourceHandle, home: &Home) -> Result<Arc<Resources>> {
    let resources = home.resources_of(handle)?;
    let wanted = hash64(T::TYPE_NAME.as_bytes());
    if handle.type_name == T::TYPE_NAME || handle.hash_code == wanted {
        return Ok(resources);
    }
    Err(invalid!(
        "Trying to access a handle's resource using the wrong type. The handle points to a resource (name '{}') of \
         type '{}' (hash code {}) but you are trying to access the resource as type '{}' (hash code {wanted})",
        handle.name,
        demangled(&handle.type_name),
        handle.hash_code,
        demangled(T::TYPE_NAME)
    ))
}

/// The one handle of a resource tensor.
pub fn handle_of(tensor: &Tensor) -> Result<&ResourceHandle> {
    match tensor.handles()? {
        [handle] => Ok(handle),
        handles => Err(invalid!("Expected one resource handle, got {}", handles.len())),
    }
}

/// `N10tensorflow3VarE` as `tensorflow::Var`; returns other names unchanged.
fn demangled(mangled: &str) -> String {
    parts(mangled).map_or(mangled.to_string(), |parts| parts.join("::"))
}

fn parts(mangled: &str) -> Option<Vec<&str>> {
    let mut rest = mangled.strip_prefix('N').and_then(|rest| rest.strip_suffix('E')).unwrap_or(mangled);
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let len: usize = rest[..digits].parse().ok()?;
        parts.push(rest.get(digits..digits.checked_add(len)?)?);
        rest = &rest[digits + len..];
    }
    Some(parts)
}

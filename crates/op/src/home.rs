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

/// A device as its kernels see it: its name and its resources.
#[derive(Clone)]
pub struct Home {
    device: Arc<str>,
    resources: Arc<Resources>,
}

impl Home {
    /// The device a node runs on.
    pub fn of(setup: &Setup<'_>) -> Home {
        Home { device: setup.device().into(), resources: setup.resources().clone() }
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
        self.check::<T>(handle)?;
        self.resources.find(&handle.container, &handle.name, T::TYPE_NAME)
    }

    /// The resource behind a handle, created if missing.
    pub fn find_or_create<T: Resource>(
        &self,
        handle: &ResourceHandle,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        self.check::<T>(handle)?;
        self.resources.get_or_create(&handle.container, &handle.name, make)
    }

    /// Removes the resource behind a handle, whatever its type.
    pub fn destroy(&self, handle: &ResourceHandle) -> Result<()> {
        self.check_device(handle)?;
        if self.resources.remove_any(&handle.container, &handle.name) {
            return Ok(());
        }
        let container = self.resources.container(&handle.container);
        if !self.resources.has_container(container) {
            return Err(not_found!("Container {container} does not exist."));
        }
        Err(not_found!("Resource {container}/{}/<unknown> does not exist.", handle.name))
    }

    fn check_device(&self, handle: &ResourceHandle) -> Result<()> {
        if handle.device == *self.device {
            return Ok(());
        }
        Err(invalid!(
            "Trying to access resource {} located in device {} from device {}",
            handle.name,
            handle.device,
            self.device
        ))
    }

    fn check<T: Resource>(&self, handle: &ResourceHandle) -> Result<()> {
        self.check_device(handle)?;
        if handle.type_name == T::TYPE_NAME {
            return Ok(());
        }
        let wanted = hash64(T::TYPE_NAME.as_bytes());
        if handle.hash_code == wanted {
            return Ok(());
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

//! Handles: names of resources that live on a device.

use crate::{DType, PartialShape};

/// The address of a resource. It is passed on unchanged, also when it was created by another runtime.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ResourceHandle {
    /// Full name of the device that holds the resource.
    pub device: String,
    /// The container that holds it.
    pub container: String,
    /// Its name in that container.
    pub name: String,
    /// TensorFlow's hash of the type name, which TensorFlow checks on use.
    pub hash_code: u64,
    /// TensorFlow's (mangled C++) name of the type.
    pub type_name: String,
    /// Types and shapes of the values it holds, where known.
    pub values: Vec<(DType, PartialShape)>,
}

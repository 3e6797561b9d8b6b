//! The name of a resource that lives on a device.

use crate::{DType, PartialShape};

/// Where a resource is found: passed through untouched, whoever made it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ResourceHandle {
    /// Full name of the device that holds the resource.
    pub device: String,
    /// The container it is in.
    pub container: String,
    /// Its name there.
    pub name: String,
    /// TensorFlow's hash of the type name; it checks it on use.
    pub hash_code: u64,
    /// TensorFlow's (mangled C++) name of the type.
    pub type_name: String,
    /// What values it holds, where that is known.
    pub values: Vec<(DType, PartialShape)>,
}

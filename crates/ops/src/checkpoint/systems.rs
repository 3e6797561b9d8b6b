//! The file systems that kernels use.

use io::FileSystems;
use op::{Resources, Setup};
use status::Result;
use std::sync::Arc;

/// The container of the file systems of a task. User containers cannot have this name, so no reset deletes the files
/// in memory.
const CONTAINER: &str = "__file_systems";

/// The file systems of the task that runs a node: those among its extensions, otherwise the local disk and `ram://`.
pub fn systems(setup: &Setup<'_>) -> Result<Arc<FileSystems>> {
    systems_of(setup.resources())
}

/// The file systems of the task of a device with these resources.
pub fn systems_of(resources: &Resources) -> Result<Arc<FileSystems>> {
    if let Some(systems) = resources.extensions().get_shared::<FileSystems>() {
        return Ok(systems);
    }
    resources.get_or_create(CONTAINER, "all", || Ok(FileSystems::local()))
}

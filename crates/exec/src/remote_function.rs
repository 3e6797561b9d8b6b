//! Functions that run on devices of other tasks.

use graph::{Function, FunctionLibrary};
use op::Callable;
use status::Result;
use std::sync::Arc;
use tensor::DType;

/// Where a function runs.
pub enum Target {
    /// On the device of this task with this full name.
    Here(String),
    /// On the device with this full name, which another task has.
    There(Arc<dyn RemoteTask>, String),
}

/// Another task as a caller of its functions sees it.
pub trait RemoteTask: Send + Sync {
    /// A function that runs there.
    fn function(&self, function: RemoteFunction) -> Result<Arc<dyn Callable>>;
}

/// What another task needs to run a function.
pub struct RemoteFunction {
    /// The library that defines it and the functions it calls.
    pub functions: Arc<FunctionLibrary>,
    /// Its name and attributes.
    pub function: Function,
    /// The full name of the device on which it runs.
    pub device: String,
    /// The types of its arguments.
    pub args: Vec<DType>,
    /// The types of its results.
    pub results: Vec<DType>,
}

//! Functions of the graph's library, as kernels call them.

use crate::{Ctx, Done, Inputs};
use graph::{Function, FunctionLibrary};
use parking_lot::Mutex;
use status::{Result, unimplemented_op};
use std::any::Any;
use std::sync::Arc;

/// Instantiates functions of the library.
pub trait Functions {
    /// The function with this name and these attributes, whose nodes run on a device of this task unless they name
    /// another one. Its body is prepared at the first call, so that functions may call themselves.
    fn instantiate(&self, function: &Function, device: &str) -> Result<Arc<dyn Callable>>;

    /// A number that is the same for equal functions, also in other processes; none if that is not known.
    fn fingerprint(&self, _function: &Function) -> Option<u64> {
        None
    }

    /// The version of the producer of the graph; 0 if that is not known.
    fn producer(&self) -> i32 {
        0
    }

    /// The definitions of all functions of the library, if they are known.
    fn definitions(&self) -> Option<Arc<FunctionLibrary>> {
        None
    }

    /// What makes other libraries for the same devices; none where no graph may be read.
    fn libraries(&self) -> Option<Arc<dyn Libraries>> {
        None
    }
}

/// Makes libraries for graphs that kernels read.
pub trait Libraries: Send + Sync {
    /// The functions of the step's graph and these, which are used where names are the same. Functions that it
    /// instantiates keep it alive.
    fn with(&self, functions: &FunctionLibrary) -> Result<Arc<dyn Functions + Send + Sync>>;
}

/// A function ready to be called.
pub trait Callable: Send + Sync {
    /// Runs the body; `done` gets its results, in order.
    fn call(&self, ctx: &Ctx<'_>, args: Inputs, done: Done);

    /// The same function with state of its own, for an owner that outlives the graph: random streams begin anew. All
    /// functions that are forked with the same `forks` share the state of the functions that they call.
    fn fork(&self, forks: &Forks) -> Result<Arc<dyn Callable>>;

    /// The same function on the device that `target` names, which may be a device of another task. Parts of the name
    /// that are missing are those of the device on which this function runs.
    fn on_device(&self, target: &str) -> Result<Arc<dyn Callable>> {
        Err(unimplemented_op!("A function of this kind cannot run on another device ({target})"))
    }

    /// True if the body, or a function that it uses, is known to have a node whose op passes the test.
    fn has_op(&self, _test: &dyn Fn(&str) -> bool) -> bool {
        false
    }

    /// True if the results are known to be the arguments, in order.
    fn is_identity(&self) -> bool {
        false
    }
}

/// The libraries of functions that one owner has forked.
#[derive(Default)]
pub struct Forks(Mutex<Option<Arc<dyn Any + Send + Sync>>>);

impl Forks {
    /// The value in which the implementation of `Callable` keeps the forked libraries; created at the first call.
    pub fn libraries<T: Default + Any + Send + Sync>(&self) -> Arc<T> {
        let mut held = self.0.lock();
        if let Some(libraries) = held.clone().and_then(|libraries| libraries.downcast().ok()) {
            return libraries;
        }
        let libraries = Arc::new(T::default());
        *held = Some(libraries.clone());
        libraries
    }
}

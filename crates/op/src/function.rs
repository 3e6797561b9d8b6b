//! Functions of the graph's library, as kernels call them.

use crate::{Ctx, Done, Inputs};
use graph::Function;
use status::Result;
use std::sync::Arc;

/// Instantiates functions of the library.
pub trait Functions {
    /// The function with this name and these attributes; its body is prepared at the first call, so
    /// that functions may call themselves.
    fn instantiate(&self, function: &Function) -> Result<Arc<dyn Callable>>;
}

/// A function ready to be called.
pub trait Callable: Send + Sync {
    /// Runs the body; `done` gets its results, in order.
    fn call(&self, ctx: &Ctx<'_>, args: Inputs, done: Done);
}

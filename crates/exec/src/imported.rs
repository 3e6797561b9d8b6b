//! Functions of graphs that kernels read while a step runs.

use crate::Library;
use crate::function::Forked;
use graph::{Function, FunctionLibrary};
use op::{Callable, Functions, Libraries};
use status::{Result, internal};
use std::sync::{Arc, Weak};

/// Makes libraries with the functions of other graphs, for the devices of a library.
pub(crate) struct ImportingLibraries(pub(crate) Weak<Library>);

impl Libraries for ImportingLibraries {
    fn with(&self, functions: &FunctionLibrary) -> Result<Arc<dyn Functions + Send + Sync>> {
        let library = self.0.upgrade().ok_or_else(|| internal!("the graph that reads another graph was released"))?;
        let mut merged = library.functions().clone();
        if !functions.functions.is_empty() {
            let both = Arc::make_mut(&mut merged);
            both.functions.extend(functions.functions.clone());
            both.gradients.extend(functions.gradients.clone());
        }
        Ok(Arc::new(Imported(library.with_functions(merged))))
    }
}

/// The library of a graph that was read. What the graph makes may outlive the step, so its functions keep the library
/// alive. Kernels in their bodies must not: the library owns them.
struct Imported(Arc<Library>);

impl Functions for Imported {
    fn instantiate(&self, function: &Function, device: &str) -> Result<Arc<dyn Callable>> {
        let body = Functions::instantiate(&*self.0, function, device)?;
        Ok(Arc::new(Forked { library: self.0.clone(), body }))
    }

    fn fingerprint(&self, function: &Function) -> Option<u64> {
        self.0.fingerprint(function)
    }

    fn producer(&self) -> i32 {
        self.0.producer()
    }

    fn definitions(&self) -> Option<Arc<FunctionLibrary>> {
        self.0.definitions()
    }
}

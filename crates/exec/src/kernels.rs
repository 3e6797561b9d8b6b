//! The kernels of a session. A kernel with state exists once per node, even if the node is in several graphs.

use op::{Kernel, Registry, Setup};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::Result;
use std::sync::Arc;

/// Builds kernels, and keeps those with state until the session ends.
pub struct Kernels {
    registry: Arc<Registry>,
    stateful: Mutex<FxHashMap<(String, String), Arc<Kernel>>>,
}

impl Kernels {
    /// Kernels of these ops.
    pub fn new(registry: Arc<Registry>) -> Kernels {
        Kernels { registry, stateful: Mutex::default() }
    }

    /// The ops.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The kernel of a node; `path` separates nodes with equal names in different functions.
    pub fn kernel(&self, setup: &Setup<'_>, path: &str, stateful: bool) -> Result<Arc<Kernel>> {
        let def = setup.def();
        // The runtime creates nodes of internal ops for each graph, and their names are not unique in a session.
        if !stateful || def.op.starts_with('_') {
            return Ok(Arc::new(self.registry.kernel(setup)?));
        }
        let key = (format!("{path}{}", def.name), def.op.clone());
        if let Some(kernel) = self.stateful.lock().get(&key) {
            return Ok(kernel.clone());
        }
        let kernel = Arc::new(self.registry.kernel(setup)?);
        Ok(self.stateful.lock().entry(key).or_insert(kernel).clone())
    }
}

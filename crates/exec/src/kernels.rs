//! Kernels of a session: those with state exist once for each node, whatever graphs the node is in.

use op::{Kernel, Registry, Setup};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::Result;
use std::sync::Arc;

/// Makes kernels, and keeps those with state for as long as the session lives.
pub struct Kernels {
    registry: Arc<Registry>,
    kept: Mutex<FxHashMap<(String, String), Arc<Kernel>>>,
}

impl Kernels {
    /// Kernels of these ops.
    pub fn new(registry: Arc<Registry>) -> Kernels {
        Kernels { registry, kept: Mutex::default() }
    }

    /// The ops.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The kernel of a node; `path` tells apart nodes of the same name in different functions.
    pub fn kernel(&self, setup: &Setup<'_>, path: &str, stateful: bool) -> Result<Arc<Kernel>> {
        let def = setup.def();
        if !stateful || def.op.starts_with('_') {
            return Ok(Arc::new(self.registry.kernel(setup)?));
        }
        let key = (format!("{path}{}", def.name), def.op.clone());
        if let Some(kernel) = self.kept.lock().get(&key) {
            return Ok(kernel.clone());
        }
        let kernel = Arc::new(self.registry.kernel(setup)?);
        Ok(self.kept.lock().entry(key).or_insert(kernel).clone())
    }
}

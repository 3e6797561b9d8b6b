//! The kernels of a session. A kernel with state exists once per node, even if the node is in several graphs.

use graph::NodeDef;
use op::{DeviceTypes, Kernel, Registry, Setup};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::Result;
use std::sync::Arc;

/// Builds kernels, and keeps those with state until the session ends.
pub struct Kernels {
    registry: Arc<Registry>,
    device_types: DeviceTypes,
    stateful: Mutex<FxHashMap<(String, String), Arc<Kernel>>>,
}

impl Kernels {
    /// Kernels of these ops.
    pub fn new(registry: Arc<Registry>) -> Kernels {
        Kernels { registry, device_types: DeviceTypes::default(), stateful: Mutex::default() }
    }

    /// The same ops, on devices of these types too.
    pub fn with_device_types(self, device_types: DeviceTypes) -> Kernels {
        Kernels { device_types, ..self }
    }

    /// Kernels of the same ops, with state of their own.
    pub(crate) fn fork(&self) -> Kernels {
        Kernels::new(self.registry.clone()).with_device_types(self.device_types.clone())
    }

    /// True if the kernel of a node is that of its device's type. What is known about the CPU's kernel does not hold
    /// for it, so the node is neither folded nor joined.
    pub(crate) fn is_of_device_type(&self, def: &NodeDef) -> bool {
        self.device_types.has_kernel(&def.device, &def.op)
    }

    fn build(&self, setup: &Setup<'_>) -> Result<Kernel> {
        self.device_types.build_kernel(setup).unwrap_or_else(|| self.registry.kernel(setup))
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
            return Ok(Arc::new(self.build(setup)?));
        }
        let key = (format!("{path}{}", def.name), def.op.clone());
        if let Some(kernel) = self.stateful.lock().get(&key) {
            return Ok(kernel.clone());
        }
        let kernel = Arc::new(self.build(setup)?);
        Ok(self.stateful.lock().entry(key).or_insert(kernel).clone())
    }
}

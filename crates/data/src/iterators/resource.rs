//! The iterator of a device: it has the types and shapes of its elements from the beginning, and a dataset once it is
//! initialized.

use super::Running;
use crate::graphs::check_external_state;
use crate::{Pipeline, Spec, StateReader, dataset_of};
use op::{Home, Resource, StepEnv};
use parking_lot::Mutex;
use status::{Result, failed_precondition};
use std::sync::Arc;
use tensor::Tensor;

/// An iterator that steps share.
pub struct IteratorResource {
    spec: Spec,
    running: Mutex<Option<Arc<Running>>>,
    /// The dataset that runs, with what is known about its origin.
    dataset: Mutex<Option<Tensor>>,
}

impl Resource for IteratorResource {
    const TYPE_NAME: &'static str = "N10tensorflow4data16IteratorResourceE";
}

impl IteratorResource {
    /// An iterator that is not initialized.
    pub fn new(spec: Spec) -> IteratorResource {
        IteratorResource { spec, running: Mutex::default(), dataset: Mutex::default() }
    }

    /// Types and shapes of its elements.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Begins a dataset; what ran before ends.
    pub fn begin(&self, home: &Home, env: &StepEnv, tensor: &Tensor) -> Result<()> {
        let dataset = dataset_of(tensor)?;
        let running = Running::new(Pipeline::of(home, env, &dataset)?, dataset.clone())?;
        self.spec.check(dataset.spec())?;
        self.replace(running);
        *self.dataset.lock() = Some(tensor.clone());
        Ok(())
    }

    /// An error if a function of the dataset has state that the state of the iterator does not contain.
    pub fn check_external_state(&self) -> Result<()> {
        let dataset = self.dataset.lock().clone();
        dataset.as_ref().map_or(Ok(()), check_external_state)
    }

    /// Begins the current dataset anew, at a saved state.
    pub fn restore(&self, home: &Home, env: &StepEnv, state: StateReader) -> Result<()> {
        let dataset = self.running("Restore() failed", "restoring it")?.dataset().clone();
        self.replace(Running::restored(Pipeline::of(home, env, &dataset)?, dataset, &Arc::new(state))?);
        Ok(())
    }

    /// What runs. The error for an iterator that is not initialized says that an action failed and what it precedes.
    pub fn running(&self, failed: &str, before: &str) -> Result<Arc<Running>> {
        self.running.lock().clone().ok_or_else(|| {
            failed_precondition!(
                "{failed} because the iterator has not been initialized. Ensure that you have run the initializer \
                 operation for this iterator before {before}."
            )
        })
    }

    fn replace(&self, running: Arc<Running>) {
        let old = self.running.lock().replace(running);
        drop(old); // outside the lock: it ends a pipeline
    }
}

//! Callables: prepared steps whose feeds and fetches are given by position instead of by name.

use crate::RunOptions;
use crate::master::RunMetadata;
use crate::master::plans::Plan;
use crate::master::session::MasterSession;
use parking_lot::Mutex;
use plan::Signature;
use rustc_hash::FxHashMap;
use status::{Result, invalid, unimplemented_op};
use std::sync::Arc;
use tensor::Tensor;

/// The feeds, fetches and targets of a prepared step.
#[derive(Clone, Debug, Default)]
pub struct CallableOptions {
    /// Tensors that are fed, in order.
    pub feeds: Vec<String>,
    /// Tensors that are fetched, in order.
    pub fetches: Vec<String>,
    /// Nodes to run.
    pub targets: Vec<String>,
    /// Options of every run.
    pub run: RunOptions,
    /// Some feeds or fetches are to stay on a device, which no session here supports.
    pub has_devices: bool,
}

/// The callables of a session, by handle.
#[derive(Default)]
pub(crate) struct Callables {
    by_handle: Mutex<FxHashMap<i64, Arc<Callable>>>,
    next: std::sync::atomic::AtomicI64,
}

struct Callable {
    plan: Arc<Plan>,
    options: CallableOptions,
}

impl MasterSession {
    pub async fn make_callable(self: &Arc<Self>, options: CallableOptions) -> Result<i64> {
        if options.has_devices {
            return Err(unimplemented_op!("feed_devices and fetch_devices are not supported in a remote session"));
        }
        let signature = Signature {
            feeds: options.feeds.clone(),
            fetches: options.fetches.clone(),
            targets: options.targets.clone(),
        };
        let plan = self.bounded(self.plan(signature), options.run.timeout).await?;
        let handle = self.callables.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.callables.by_handle.lock().insert(handle, Arc::new(Callable { plan, options }));
        Ok(handle)
    }

    pub async fn run_callable(&self, handle: i64, feeds: Vec<Tensor>) -> Result<(Vec<Tensor>, RunMetadata)> {
        let callable = self.callables.by_handle.lock().get(&handle).cloned();
        let callable = callable.ok_or_else(|| invalid!("No such callable handle: {handle}"))?;
        let options = &callable.options;
        if feeds.len() != options.feeds.len() {
            return Err(invalid!("Expected {} feed tensors, but got {}", options.feeds.len(), feeds.len()));
        }
        let feeds = options.feeds.iter().cloned().zip(feeds).collect();
        let call = self.run_plan(&callable.plan, feeds, &options.fetches, &options.run);
        let answer = self.bounded(call, options.run.timeout).await?;
        Ok((answer.tensors.into_iter().map(|(_, tensor)| tensor).collect(), answer.metadata))
    }

    pub fn release_callable(&self, handle: i64) -> Result<()> {
        let found = self.callables.by_handle.lock().remove(&handle);
        found.map(drop).ok_or_else(|| invalid!("No such callable handle: {handle}"))
    }
}

//! The log of tensors received from other tasks, kept while a client has enabled it.

use crate::RecvTensor;
use crate::api::{Logging, TransferStats};
use graph::RendezvousKey;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// The number of steps above which the log is cleared: the client that enabled it no longer reads it.
const MAX_STEPS: usize = 1 << 10;

#[derive(Default)]
pub(crate) struct Transfers {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// How many clients have enabled the log.
    enabled: u32,
    steps: FxHashMap<u64, Vec<TransferStats>>,
}

impl Transfers {
    /// The time if the log is enabled; to be passed to `record` when the tensor has arrived.
    pub fn start(&self) -> Option<u64> {
        (self.inner.lock().enabled > 0).then(now)
    }

    /// Records a tensor that has arrived, if the log was enabled when it was requested.
    pub fn record(&self, request: &RecvTensor, bytes: usize, start: Option<u64>) {
        let Some(start) = start else { return };
        let Ok(key) = RendezvousKey::parse(&request.key) else { return };
        let stats = TransferStats {
            tensor: key.tensor_name.to_string(),
            send_device: key.send_device.to_string(),
            recv_device: key.recv_device.to_string(),
            bytes: bytes as u64,
            start,
            end: now(),
        };
        let mut inner = self.inner.lock();
        inner.steps.entry(request.step_id).or_default().push(stats);
        if inner.steps.len() > MAX_STEPS {
            inner.steps.clear();
        }
    }

    /// The steps with recorded transfers.
    #[cfg(test)]
    pub fn steps(&self) -> Vec<u64> {
        self.inner.lock().steps.keys().copied().collect()
    }

    /// Answers a Logging request, in TensorFlow's order: enable, disable, read, clear.
    pub fn handle(&self, request: Logging) -> Vec<(u64, Vec<TransferStats>)> {
        let mut inner = self.inner.lock();
        inner.enabled += u32::from(request.enable);
        inner.enabled = inner.enabled.saturating_sub(u32::from(request.disable));
        let found = request.steps.into_iter().filter_map(|step| Some((step, inner.steps.remove(&step)?))).collect();
        if request.clear {
            inner.steps.clear();
        }
        found
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}

//! Tensors received from other tasks, noted while somebody wants to know.

use crate::api::{Logging, TransferStats};
use graph::RendezvousKey;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// With more steps than this something went wrong with whoever asked for them.
const MAX_STEPS: usize = 1 << 10;

#[derive(Default)]
pub(crate) struct Transfers {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    wanted: u32,
    steps: FxHashMap<u64, Vec<TransferStats>>,
}

impl Transfers {
    /// The time, if anybody wants it noted.
    pub fn start(&self) -> Option<u64> {
        (self.inner.lock().wanted > 0).then(now)
    }

    /// Notes a tensor that is here.
    pub fn note(&self, step_id: u64, key: &str, bytes: usize, start: u64) {
        let Ok(key) = RendezvousKey::parse(key) else { return };
        let stats = TransferStats {
            tensor: key.tensor_name.to_string(),
            send_device: key.send_device.to_string(),
            recv_device: key.recv_device.to_string(),
            bytes: bytes as u64,
            start,
            end: now(),
        };
        let mut inner = self.inner.lock();
        inner.steps.entry(step_id).or_default().push(stats);
        if inner.steps.len() > MAX_STEPS {
            inner.steps.clear();
        }
    }

    /// The steps of which something is noted.
    #[cfg(test)]
    pub fn steps(&self) -> Vec<u64> {
        self.inner.lock().steps.keys().copied().collect()
    }

    /// Does what was asked, in TensorFlow's order.
    pub fn handle(&self, request: Logging) -> Vec<(u64, Vec<TransferStats>)> {
        let mut inner = self.inner.lock();
        inner.wanted += u32::from(request.enable);
        inner.wanted = inner.wanted.saturating_sub(u32::from(request.disable));
        let told = request.steps.into_iter().filter_map(|step| Some((step, inner.steps.remove(&step)?))).collect();
        if request.clear {
            inner.steps.clear();
        }
        told
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}

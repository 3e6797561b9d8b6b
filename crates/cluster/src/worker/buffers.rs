//! Buffers of collective ops in one step: matches those that are provided with those that are requested, in either order.

use crate::api::RecvBuf;
use crate::worker::Worker;
use futures_channel::oneshot;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Error, Result, aborted, failed_precondition, internal, invalid};
use std::sync::Arc;
use tensor::Bytes;

/// The buffers of one step.
#[derive(Default)]
pub(crate) struct Buffers {
    exchange: Mutex<BufferExchange>,
}

/// Receives a buffer; the caller that requested it may have given up.
pub(crate) type Consumer = oneshot::Sender<Result<Bytes>>;

/// The buffers that no consumer has requested, and the consumers that wait. Each key is used once.
#[derive(Default)]
pub(crate) struct BufferExchange {
    aborted: Option<Error>,
    slots: FxHashMap<String, Slot>,
}

enum Slot {
    Provided(Bytes),
    Wanted(Consumer),
}

impl BufferExchange {
    /// Stores a buffer, or passes it to the consumer that waits for it.
    pub fn provide(&mut self, key: &str, buffer: Bytes) -> Result<()> {
        if let Some(error) = &self.aborted {
            return Err(error.clone());
        }
        let left = match self.slots.remove(key) {
            None => Some(Slot::Provided(buffer)),
            Some(Slot::Wanted(consumer)) => match consumer.send(Ok(buffer)) {
                Ok(()) => None,
                Err(unsent) => Some(Slot::Provided(unsent?)), // the consumer has given up
            },
            Some(first @ Slot::Provided(_)) => {
                self.slots.insert(key.to_string(), first);
                return Err(internal!("Second provider arrived for key {key}"));
            }
        };
        self.slots.extend(left.map(|slot| (key.to_string(), slot)));
        Ok(())
    }

    /// Passes a buffer to a consumer, now or when it is provided.
    pub fn consume(&mut self, key: &str, consumer: Consumer) {
        let answer = match (&self.aborted, self.slots.remove(key)) {
            (Some(error), _) => Err(error.clone()),
            (None, Some(Slot::Provided(buffer))) => Ok(buffer),
            (None, Some(Slot::Wanted(first))) if !first.is_canceled() => {
                self.slots.insert(key.to_string(), Slot::Wanted(first));
                Err(internal!("Second consumer arrived for key {key}"))
            }
            (None, _) => {
                self.slots.insert(key.to_string(), Slot::Wanted(consumer));
                return;
            }
        };
        let _ = consumer.send(answer);
    }

    /// Ends the step: fails the consumers that wait, and everything later.
    pub fn abort(&mut self, error: Error) {
        let error = self.aborted.get_or_insert(error);
        for slot in std::mem::take(&mut self.slots).into_values() {
            if let Slot::Wanted(consumer) = slot {
                let _ = consumer.send(Err(error.clone()));
            }
        }
    }
}

impl Buffers {
    /// Stores a buffer, or passes it to the consumer that waits for it.
    pub fn provide(&self, key: &str, buffer: Bytes) -> Result<()> {
        self.exchange.lock().provide(key, buffer)
    }

    /// Passes a buffer to a consumer, now or when it is provided.
    pub fn consume(&self, key: &str, consumer: Consumer) {
        self.exchange.lock().consume(key, consumer);
    }

    pub fn abort(&self, error: Error) {
        self.exchange.lock().abort(error);
    }

    /// Fails the consumers that wait for keys which begin like this.
    pub fn fail_consumers(&self, prefix: &str, error: &Error) {
        let failed: Vec<Slot> = {
            let mut exchange = self.exchange.lock();
            let waits = |key: &str, slot: &Slot| key.starts_with(prefix) && matches!(slot, Slot::Wanted(_));
            let keys: Vec<String> =
                exchange.slots.iter().filter(|(key, slot)| waits(key, slot)).map(|(key, _)| key.clone()).collect();
            keys.into_iter().filter_map(|key| exchange.slots.remove(&key)).collect()
        };
        for slot in failed {
            if let Slot::Wanted(consumer) = slot {
                let _ = consumer.send(Err(error.clone()));
            }
        }
    }

    /// Why the operations of the step were given up, if they were.
    pub fn failure(&self) -> Option<Error> {
        self.exchange.lock().aborted.clone()
    }

    /// Whether buffers wait for the tasks that will request them.
    pub fn has_buffers(&self) -> bool {
        let exchange = self.exchange.lock();
        exchange.aborted.is_none() && exchange.slots.values().any(|slot| matches!(slot, Slot::Provided(_)))
    }
}

impl Worker {
    /// Provides a buffer under a key of a step, for another task to receive.
    pub fn provide(&self, step_id: u64, key: &str, buffer: Bytes) -> Result<()> {
        self.steps.step(step_id)?.buffers.provide(key, buffer)
    }
}

/// Waits for a buffer that a step here provides.
pub(crate) async fn recv_buf(worker: Arc<Worker>, request: RecvBuf) -> Result<Bytes> {
    let RecvBuf { step_id, key, device, incarnation, .. } = request;
    let own = worker.devices.iter().find(|own| own.name == device);
    let own = own.ok_or_else(|| invalid!("{device} unknown device."))?;
    if own.incarnation != incarnation {
        return Err(failed_precondition!(
            "RecvBuf expects a different device incarnation: {incarnation} vs. {}. Your worker job that contains the \
             device (\"{device}\") was probably restarted. Check your worker job for the reason why it was restarted.",
            own.incarnation
        ));
    }
    if let Some(group) = key.split(':').next().and_then(|group| group.parse().ok()) {
        worker.collective.groups.lock().check_whole(group)?;
    }
    let (consumer, wait) = oneshot::channel();
    worker.steps.buffers(step_id)?.consume(&key, consumer);
    let buffer = wait.await.unwrap_or_else(|_| Err(aborted!("Step {step_id} has ended")))?;
    worker.counters.sent(&key, buffer.len());
    Ok(buffer)
}

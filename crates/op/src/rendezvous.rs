//! The meeting point of tensors and their receivers in one step.

use crate::{OnOpened, OpenedTensor, Stored};
use status::Result;
use std::sync::Arc;
use tensor::Tensor;

/// A received tensor, and whether it is dead.
pub type Received = (Tensor, bool);

/// Passes tensors between the devices and tasks of one step: each key is sent once and received once, in either order.
pub trait Rendezvous: Send + Sync {
    /// Sends a tensor; never waits.
    fn send(&self, key: &str, tensor: Tensor, dead: bool) -> Result<()>;
    /// Calls `done` with the tensor, at once or when it is sent.
    fn recv(&self, key: &str, done: Box<dyn FnOnce(Result<Received>) + Send>);
    /// Sends a tensor that is in a file and is read when it is received; never waits.
    fn send_stored(&self, key: &str, stored: Arc<dyn Stored>) -> Result<()> {
        self.send(key, stored.read()?, false)
    }
    /// Like `recv`, for a receiver that reads a tensor of another task in chunks.
    fn open(&self, key: &str, done: OnOpened) {
        self.recv(key, Box::new(move |received| done(received.map(OpenedTensor::Whole))));
    }
    /// Answers all receivers, those that wait and those to come, with this error.
    fn abort(&self, error: status::Error);
}

//! Where a value waits for its reader, or a reader for its value.

use crate::{Opened, Opening, Stored};
use status::Result;
use std::sync::Arc;
use tensor::Tensor;

/// A received tensor, and whether it is dead.
pub type Received = (Tensor, bool);

/// A meeting point of one step: each key is sent once and received once.
pub trait Rendezvous: Send + Sync {
    /// Gives a value; never waits.
    fn send(&self, key: &str, tensor: Tensor, dead: bool) -> Result<()>;
    /// Calls `done` with the value, at once or when it comes.
    fn recv(&self, key: &str, done: Box<dyn FnOnce(Result<Received>) + Send>);
    /// Gives a value that is in a file, to be read when somebody receives it; never waits.
    fn offer(&self, key: &str, stored: Arc<dyn Stored>) -> Result<()> {
        self.send(key, stored.read()?, false)
    }
    /// As `recv`, for a reader that wants the value piece by piece if it comes from far.
    fn open(&self, key: &str, done: Opening) {
        let whole = |(tensor, dead): Received| (!dead).then_some(Opened::Whole(tensor));
        self.recv(key, Box::new(move |received| done(received.map(whole))));
    }
    /// Answers all waiting and future readers with this error.
    fn abort(&self, error: status::Error);
}

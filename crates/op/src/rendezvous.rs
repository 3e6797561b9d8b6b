//! Where a value waits for its reader, or a reader for its value.

use status::Result;
use tensor::Tensor;

/// A received tensor, and whether it is dead.
pub type Received = (Tensor, bool);

/// A meeting point of one step: each key is sent once and received once.
pub trait Rendezvous: Send + Sync {
    /// Gives a value; never waits.
    fn send(&self, key: &str, tensor: Tensor, dead: bool) -> Result<()>;
    /// Calls `done` with the value, at once or when it comes.
    fn recv(&self, key: &str, done: Box<dyn FnOnce(Result<Received>) + Send>);
    /// Answers all waiting and future readers with this error.
    fn abort(&self, error: status::Error);
}

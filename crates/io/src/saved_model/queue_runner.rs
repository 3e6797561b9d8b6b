//! What a graph says of the threads that fill its queues.

use super::wire;
use bytes::Bytes;
use status::Result;

/// A queue and the ops that fill it, as it stands in the collection `queue_runners`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueRunnerDef {
    /// The queue's node.
    pub queue: String,
    /// Nodes that fill it.
    pub enqueue_ops: Vec<String>,
    /// The node that closes it.
    pub close_op: String,
    /// The node that closes it and sends away who waits.
    pub cancel_op: String,
    /// Codes of errors that mean the end of the input.
    pub closed: Vec<i32>,
}

impl QueueRunnerDef {
    /// Reads a QueueRunnerDef message.
    pub fn decode(bytes: &[u8]) -> Result<QueueRunnerDef> {
        wire::decode_queue_runner(bytes)
    }

    /// Writes a QueueRunnerDef message.
    pub fn encode(&self) -> Bytes {
        wire::encode_queue_runner(self)
    }
}

//! The description of a queue runner in a graph.

use super::wire;
use bytes::Bytes;
use status::Result;

/// A queue and the ops that fill it, an element of the collection `queue_runners`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueRunnerDef {
    /// The node of the queue.
    pub queue: String,
    /// The nodes that enqueue.
    pub enqueue_ops: Vec<String>,
    /// The node that closes the queue.
    pub close_op: String,
    /// The node that closes the queue and cancels its waiting ops.
    pub cancel_op: String,
    /// The error codes that mean the end of the input.
    pub closed: Vec<i32>,
}

impl QueueRunnerDef {
    /// Decodes a QueueRunnerDef message.
    pub fn decode(bytes: &[u8]) -> Result<QueueRunnerDef> {
        wire::decode_queue_runner(bytes)
    }

    /// Encodes a QueueRunnerDef message.
    pub fn encode(&self) -> Bytes {
        wire::encode_queue_runner(self)
    }
}

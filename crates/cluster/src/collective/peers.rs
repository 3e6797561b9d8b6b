//! The other members of a group as one of them sees them in one operation: it offers them buffers, and receives theirs.

use crate::api::{RecvBuf, from_task};
use crate::collective::groups::Group;
use crate::worker::Worker;
use crate::worker::steps::Step;
use crate::{ClusterSpec, Task, ids};
use futures_channel::oneshot;
use futures_util::future::{Either, select};
use status::{Result, aborted, internal};
use std::sync::Arc;
use tensor::{Buffer, Bytes, DType, Shape, Tensor};

/// The members of a group during one operation.
pub(crate) struct Peers {
    pub worker: Arc<Worker>,
    pub cluster: ClusterSpec,
    /// The task of this member, by its name in the group.
    pub own: Task,
    pub step: Step,
    pub step_id: u64,
    pub group: Arc<Group>,
    /// The rank of this member.
    pub rank: usize,
    /// The beginning of the keys of all buffers.
    pub key: String,
    pub dtype: DType,
}

impl Peers {
    /// Offers a buffer to the member that asks for it. Does not wait: the buffer is kept when the step ends.
    pub fn offer(&self, key: String, value: &Tensor) -> Result<()> {
        let buffer = value.buffer().ok_or_else(|| internal!("{value:?} has no buffer"))?;
        self.step.buffers.provide(&format!("{}{key}", self.key), buffer.to_bytes())
    }

    /// Receives a buffer of a member, as elements of this shape.
    pub async fn receive(&self, from: usize, key: String, shape: Shape) -> Result<Tensor> {
        let key = format!("{}{key}", self.key);
        let size = shape.checked_elements()? * self.dtype.size();
        let (consumer, answer) = oneshot::channel();
        if self.group.members[from].task == self.own {
            self.step.buffers.consume(&key, consumer);
        } else {
            self.request(from, key, size, consumer)?;
        }
        let bytes = answer.await.unwrap_or_else(|_| Err(aborted!("the call for a buffer was dropped")))?;
        if bytes.len() != size {
            return Err(internal!(
                "Tensor Size Mismatch: RecvBufResponse returned {} bytes, expected: {size}",
                bytes.len()
            ));
        }
        let buffer = Buffer::from_bytes(bytes, self.dtype.size());
        Tensor::from_buffer(self.dtype, shape, buffer.ok_or_else(|| internal!("no memory for {size} bytes"))?)
    }

    /// Asks another task for a buffer. The call ends when the receiver of its answer is dropped.
    fn request(&self, from: usize, key: String, size: usize, answer: oneshot::Sender<Result<Bytes>>) -> Result<()> {
        let member = &self.group.members[from];
        let (task, link) = (member.task.to_string(), self.worker.link(&self.cluster, &member.task)?);
        let request = RecvBuf {
            step_id: self.step_id,
            key,
            device: member.device.name.clone(),
            incarnation: member.device.incarnation,
            num_bytes: size as i64,
            request_id: ids::request_id(),
            receiver: self.group.members[self.rank].device.name.clone(),
        };
        let worker = self.worker.clone();
        self.worker.runtime.spawn(Box::pin(async move {
            let mut answer = answer;
            let received = {
                let call = link.recv_buf(request.clone());
                match select(call, answer.cancellation()).await {
                    Either::Left((received, _)) => received,
                    Either::Right(_) => return,
                }
            };
            if let Ok(bytes) = &received {
                worker.counters.received(&request.key, bytes.len());
            }
            let _ = answer.send(received.map_err(|error| from_task(error, &task)));
        }));
        Ok(())
    }
}

//! Reads tensors of other tasks in chunks: opens them, reads a few chunks ahead, and stops when the step is aborted.

use crate::Task;
use crate::api::{RecvTensor, from_task};
use crate::worker::Worker;
use crate::worker::rendezvous::StepRendezvous;
use exec::LocalRendezvous;
use futures_channel::{mpsc, oneshot};
use futures_util::future::{Either, Shared, select};
use futures_util::{FutureExt, StreamExt};
use op::{OnOpened, OpenedTensor, Rendezvous, TensorStream};
use status::{Error, Result, internal};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tensor::{Bytes, Tensor};

/// The buffer of the channel between the transfer and its reader. The channel holds one chunk more than this and the
/// transfer waits with another one, so three chunks at most are here before the reader asks for them.
const AHEAD: usize = 1;

impl StepRendezvous {
    /// Asks another task for a tensor that stays there, except for a few chunks, until it is read.
    pub(super) fn open_remote(&self, task: Task, key: &str, done: OnOpened) {
        let link = match self.worker.link(&self.cluster, &task) {
            Ok(link) => link,
            Err(error) => return done(Err(error)),
        };
        let request = RecvTensor { step_id: self.step_id, key: key.to_string(), request_id: 0 };
        let abort = Abort::new(&self.local, key);
        let worker = self.worker.clone();
        self.worker.runtime.spawn(Box::pin(async move {
            let start = worker.transfers.start();
            done(match abort.or(link.open_tensor(request.clone())).await {
                Ok(OpenedTensor::Whole((tensor, dead))) => {
                    if !dead {
                        worker.counters.received(&request.key, tensor.byte_size());
                        worker.transfers.record(&request, tensor.byte_size(), start);
                    }
                    Ok(OpenedTensor::Whole((tensor, dead)))
                }
                Ok(OpenedTensor::Stream(stream)) => {
                    Ok(OpenedTensor::Stream(Transfer { worker, request, task, start, bytes: 0, stream, abort }.ahead()))
                }
                Err(error) => Err(from_task(error, &task.to_string())),
            });
        }));
    }
}

/// Learns when the step is aborted: it waits in the step's rendezvous in the place of the tensor's receiver.
struct Abort {
    local: Arc<LocalRendezvous>,
    key: String,
    aborted: Shared<oneshot::Receiver<Error>>,
}

impl Abort {
    fn new(local: &Arc<LocalRendezvous>, key: &str) -> Abort {
        let (abort, aborted) = oneshot::channel();
        local.recv_unread(key, move |sent| {
            if let Err(error) = sent {
                let _ = abort.send(error);
            }
        });
        Abort { local: local.clone(), key: key.to_string(), aborted: aborted.shared() }
    }

    /// The result of `work`, or the error with which the step is aborted first.
    async fn or<T>(&self, work: impl Future<Output = Result<T>> + Unpin) -> Result<T> {
        match select(self.aborted.clone(), work).await {
            Either::Left((error, _)) => Err(error.unwrap_or_else(|_| internal!("{} has no receiver", self.key))),
            Either::Right((result, _)) => result,
        }
    }
}

impl Drop for Abort {
    /// Removes the receiver from the rendezvous by sending it a value, which it ignores.
    fn drop(&mut self) {
        let _ = self.local.send(&self.key, Tensor::vector::<f32>(&[]), false);
    }
}

/// A tensor that is being received.
struct Transfer {
    worker: Arc<Worker>,
    request: RecvTensor,
    task: Task,
    start: Option<u64>,
    /// How much of it is here.
    bytes: usize,
    stream: TensorStream,
    abort: Abort,
}

type Chunk = Result<Option<Bytes>>;

impl Transfer {
    /// The tensor for its reader. Reading ahead starts with the first chunk that the reader pulls: until then the
    /// tensor stays with its sender, however early it was opened.
    fn ahead(self) -> TensorStream {
        let (dtype, shape) = (self.stream.dtype(), self.stream.shape().clone());
        let mut state = State::Opened(Box::new(self));
        TensorStream::new(dtype, shape, move |cx| state.poll_next(cx))
    }

    /// Receives chunks until all are here.
    async fn run(mut self, mut chunks: mpsc::Sender<Chunk>) {
        loop {
            let chunk = self.abort.or(poll_fn(|cx| self.stream.poll_next(cx))).await;
            let chunk = chunk.map_err(|error| from_task(error, &self.task.to_string()));
            match &chunk {
                Ok(Some(bytes)) => {
                    self.bytes += bytes.len();
                    self.worker.counters.received(&self.request.key, bytes.len());
                }
                Ok(None) => self.worker.transfers.record(&self.request, self.bytes, self.start),
                Err(_) => {}
            }
            let is_last = !matches!(chunk, Ok(Some(_)));
            let is_sent = poll_fn(|cx| chunks.poll_ready(cx)).await.and_then(|()| chunks.start_send(chunk)).is_ok();
            if is_last || !is_sent {
                return;
            }
        }
    }
}

enum State {
    /// The reader has not pulled yet.
    Opened(Box<Transfer>),
    Reading(ReadAhead),
    /// The tensor is complete or has failed.
    Ended,
}

/// Chunks that are here before the reader asks for them. Dropping this ends the transfer.
struct ReadAhead {
    chunks: mpsc::Receiver<Chunk>,
    _transfer: oneshot::Sender<()>,
}

impl ReadAhead {
    fn start(transfer: Transfer) -> ReadAhead {
        let (send, chunks) = mpsc::channel(AHEAD);
        let (guard, dropped) = oneshot::channel();
        let runtime = transfer.worker.runtime.clone();
        runtime.spawn(Box::pin(async move {
            select(dropped, pin!(transfer.run(send))).await;
        }));
        ReadAhead { chunks, _transfer: guard }
    }
}

impl State {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Chunk> {
        let mut ahead = match std::mem::replace(self, State::Ended) {
            State::Opened(transfer) => ReadAhead::start(*transfer),
            State::Reading(ahead) => ahead,
            State::Ended => return Poll::Ready(Err(internal!("a tensor was read after its end"))),
        };
        let Poll::Ready(chunk) = ahead.chunks.poll_next_unpin(cx) else {
            *self = State::Reading(ahead);
            return Poll::Pending;
        };
        let chunk = chunk.unwrap_or_else(|| Err(internal!("the transfer of a tensor was dropped")));
        if let Ok(Some(_)) = chunk {
            *self = State::Reading(ahead);
        }
        Poll::Ready(chunk)
    }
}

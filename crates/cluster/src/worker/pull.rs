//! Tensors of other tasks that are read here piece by piece, when their reader is ready for them.

use crate::Task;
use crate::api::{Arriving, RecvTensor, Stream, from_task};
use crate::worker::Worker;
use crate::worker::recv::StepRendezvous;
use exec::LocalRendezvous;
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{Either, Shared, select};
use op::{Opened, Opening, Pieces, Rendezvous};
use parking_lot::Mutex;
use status::{Error, Result, internal};
use std::sync::Arc;
use tensor::{Bytes, Tensor};

impl StepRendezvous {
    /// Asks another task for a tensor that stays there, but for a few pieces, until it is read.
    pub(super) fn pull(&self, task: Task, key: &str, done: Opening) {
        let link = match self.worker.link(&self.cluster, &task) {
            Ok(link) => link,
            Err(error) => return done(Err(error)),
        };
        let request = RecvTensor { step_id: self.step_id, key: key.to_string() };
        let wait = Wait::new(&self.local, key);
        let worker = self.worker.clone();
        self.worker.peers.spawn(Box::pin(async move {
            let start = worker.transfers.start();
            let opened = wait.until_abort(link.open_tensor(request.clone())).await;
            done(match opened {
                Ok(Arriving::Whole(_, true)) => Ok(None),
                Ok(Arriving::Whole(tensor, false)) => {
                    worker.counters.came(&request.key, tensor.byte_size());
                    note(&worker, &request, tensor.byte_size(), start);
                    Ok(Some(Opened::Whole(tensor)))
                }
                Ok(Arriving::Pieces(stream)) => {
                    let (dtype, shape) = (stream.dtype(), stream.shape().clone());
                    let pulled = Pulled { worker, request, task, start, bytes: 0, stream, wait };
                    Ok(Some(Opened::Pieces(dtype, shape, Arc::new(Taken(Arc::new(Mutex::new(Some(pulled))))))))
                }
                Err(error) => Err(from_task(error, &task.to_string())),
            });
        }));
    }
}

fn note(worker: &Worker, request: &RecvTensor, bytes: usize, start: Option<u64>) {
    if let Some(start) = start {
        worker.transfers.note(request.step_id, &request.key, bytes, start);
    }
}

/// A place in the step's rendezvous, which tells when the step is aborted.
struct Wait {
    local: Arc<LocalRendezvous>,
    key: String,
    aborted: Shared<oneshot::Receiver<Error>>,
}

impl Wait {
    fn new(local: &Arc<LocalRendezvous>, key: &str) -> Wait {
        let (tell, aborted) = oneshot::channel();
        local.recv_unread(key, move |sent| {
            if let Err(error) = sent {
                let _ = tell.send(error);
            }
        });
        Wait { local: local.clone(), key: key.to_string(), aborted: aborted.shared() }
    }

    async fn until_abort<T>(&self, work: impl Future<Output = Result<T>> + Unpin) -> Result<T> {
        match select(self.aborted.clone(), work).await {
            Either::Left((error, _)) => Err(error.unwrap_or_else(|_| internal!("nobody waits for {}", self.key))),
            Either::Right((result, _)) => result,
        }
    }
}

impl Drop for Wait {
    /// The place is free again: the one who waited there is answered, and does not listen any more.
    fn drop(&mut self) {
        let _ = self.local.send(&self.key, Tensor::vector::<f32>(&[]), false);
    }
}

/// A tensor on its way, and the call that brings it.
struct Pulled {
    worker: Arc<Worker>,
    request: RecvTensor,
    task: Task,
    start: Option<u64>,
    bytes: usize,
    stream: Box<dyn Stream>,
    wait: Wait,
}

/// The tensor while nobody asks for its next piece.
struct Taken(Arc<Mutex<Option<Pulled>>>);

impl Pieces for Taken {
    fn next(&self, done: Box<dyn FnOnce(Result<Option<Bytes>>) + Send>) {
        let Some(mut pulled) = self.0.lock().take() else {
            return done(Err(internal!("a tensor is read twice, or after its end")));
        };
        let (place, peers) = (Arc::downgrade(&self.0), pulled.worker.peers.clone());
        peers.spawn(Box::pin(async move {
            let piece = pulled.wait.until_abort(pulled.stream.next()).await;
            let piece = piece.map_err(|error| from_task(error, &pulled.task.to_string()));
            match &piece {
                Ok(Some(bytes)) => {
                    pulled.bytes += bytes.len();
                    pulled.worker.counters.came(&pulled.request.key, bytes.len());
                    if let Some(place) = place.upgrade() {
                        *place.lock() = Some(pulled);
                    }
                }
                Ok(None) => note(&pulled.worker, &pulled.request, pulled.bytes, pulled.start),
                Err(_) => {}
            }
            done(piece);
        }));
    }
}

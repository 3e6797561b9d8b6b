//! Tensors of other tasks that are read here piece by piece, when their reader is ready for them.

use crate::api::{Arriving, RecvTensor, Stream, from_task};
use crate::worker::Worker;
use crate::worker::recv::StepRendezvous;
use crate::{Runtime, Task};
use exec::LocalRendezvous;
use futures_channel::{mpsc, oneshot};
use futures_util::future::{Either, Shared, select};
use futures_util::{FutureExt, StreamExt};
use op::{Opened, Opening, Pieces, Rendezvous};
use parking_lot::Mutex;
use status::{Error, Result, internal};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use tensor::{Bytes, Tensor};

/// So many pieces are here before they are asked for, and one more, and the one that is coming.
const AHEAD: usize = 1;

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
        self.worker.runtime.spawn(Box::pin(async move {
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
                    Ok(Some(Opened::Pieces(dtype, shape, Arc::new(Taken::new(pulled)))))
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

type Piece = Result<Option<Bytes>>;

impl Pulled {
    /// Reads ahead of the one who takes the pieces, until all of them are here.
    async fn read(mut self, mut pieces: mpsc::Sender<Piece>) {
        loop {
            let piece = self.wait.until_abort(self.stream.next()).await;
            let piece = piece.map_err(|error| from_task(error, &self.task.to_string()));
            match &piece {
                Ok(Some(bytes)) => {
                    self.bytes += bytes.len();
                    self.worker.counters.came(&self.request.key, bytes.len());
                }
                Ok(None) => note(&self.worker, &self.request, self.bytes, self.start),
                Err(_) => {}
            }
            let last = !matches!(piece, Ok(Some(_)));
            if poll_fn(|cx| pieces.poll_ready(cx)).await.and_then(|()| pieces.start_send(piece)).is_err() || last {
                return;
            }
        }
    }
}

/// A tensor whose pieces are taken one by one.
struct Taken {
    runtime: Arc<dyn Runtime>,
    state: Arc<Mutex<State>>,
}

enum State {
    /// Nobody asked for a piece yet.
    Opened(Box<Pulled>),
    /// Pieces are being read; nobody asks for the next.
    Ahead(Ahead),
    /// The next piece is asked for, or there is none.
    Asked,
}

/// Pieces that are here before they are asked for. The reading ends when this is dropped.
struct Ahead {
    pieces: mpsc::Receiver<Piece>,
    _reading: oneshot::Sender<()>,
}

impl Ahead {
    fn new(runtime: &dyn Runtime, pulled: Pulled) -> Ahead {
        let (send, pieces) = mpsc::channel(AHEAD);
        let (reading, dropped) = oneshot::channel();
        runtime.spawn(Box::pin(async move {
            select(dropped, pin!(pulled.read(send))).await;
        }));
        Ahead { pieces, _reading: reading }
    }
}

impl Taken {
    fn new(pulled: Pulled) -> Taken {
        Taken { runtime: pulled.worker.runtime.clone(), state: Arc::new(Mutex::new(State::Opened(Box::new(pulled)))) }
    }
}

impl Pieces for Taken {
    fn next(&self, done: Box<dyn FnOnce(Piece) + Send>) {
        let mut ahead = match std::mem::replace(&mut *self.state.lock(), State::Asked) {
            State::Opened(pulled) => Ahead::new(&*self.runtime, *pulled),
            State::Ahead(ahead) => ahead,
            State::Asked => return done(Err(internal!("a tensor is read twice, or after its end"))),
        };
        let state = Arc::downgrade(&self.state);
        self.runtime.spawn(Box::pin(async move {
            let piece = ahead.pieces.next().await;
            let piece = piece.unwrap_or_else(|| Err(internal!("a tensor is not read any more")));
            if let (Ok(Some(_)), Some(state)) = (&piece, state.upgrade()) {
                *state.lock() = State::Ahead(ahead);
            }
            done(piece);
        }));
    }
}

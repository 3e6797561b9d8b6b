//! Answers other tasks that ask for tensors of steps here.

use crate::RecvTensor;
use crate::api::{Arriving, Future, Stream, from_task};
use crate::worker::Worker;
use exec::Sent;
use futures_channel::oneshot;
use graph::{DeviceSpec, RendezvousKey};
use op::{Stored, StoredPieces};
use status::{Result, aborted, internal, invalid};
use std::sync::Arc;
use tensor::{Bytes, DType, Shape, Tensor};

/// Waits for a tensor that a step here sends.
pub(crate) async fn recv_tensor(worker: Arc<Worker>, request: RecvTensor) -> Result<(Tensor, bool)> {
    let (tensor, dead) = sent(&worker, &request).await?.read().map_err(|error| from_task(error, &worker.name))?;
    worker.counters.went(&request.key, tensor.byte_size());
    Ok((tensor, dead))
}

/// The same, but what is in a file is read as it is sent.
pub(crate) async fn open_tensor(worker: Arc<Worker>, request: RecvTensor) -> Result<Arriving> {
    let stored = match sent(&worker, &request).await? {
        Sent::Tensor(tensor, dead) => return Ok(whole(&worker, &request, tensor, dead)),
        Sent::Stored(stored) => stored,
    };
    match stored.pieces() {
        Some(pieces) => {
            Ok(Arriving::Pieces(Box::new(FromFile { worker, key: request.key, stored, pieces: Some(pieces) })))
        }
        None => {
            let tensor = stored.read().map_err(|error| from_task(error, &worker.name))?;
            Ok(whole(&worker, &request, tensor, false))
        }
    }
}

fn whole(worker: &Worker, request: &RecvTensor, tensor: Tensor, dead: bool) -> Arriving {
    worker.counters.went(&request.key, tensor.byte_size());
    Arriving::Whole(tensor, dead)
}

async fn sent(worker: &Arc<Worker>, request: &RecvTensor) -> Result<Sent> {
    let key = RendezvousKey::parse(&request.key)?;
    let local = worker.devices.iter().find(|device| is_same_local(&device.name, key.send_device));
    let device = local.ok_or_else(|| invalid!("{} has no device {}", worker.name, key.send_device))?;
    if device.incarnation != key.send_incarnation {
        return Err(aborted!(
            "RecvTensor expects a different device incarnation: {} vs. {}. Your worker job (\"{}\") was probably \
             restarted. Check your worker job for the reason why it was restarted.",
            key.send_incarnation,
            device.incarnation,
            worker.name
        ));
    }
    let step = worker.steps.step(request.step_id)?;
    let (answer, wait) = oneshot::channel();
    step.tensors.recv_unread(&request.key, move |sent| drop(answer.send(sent)));
    let sent = wait.await.unwrap_or_else(|_| Err(aborted!("Step {} has ended", request.step_id)));
    // The step failed here: its master hears that from here, so for the one who asked it is an echo.
    sent.map_err(|error| from_task(error, &worker.name).derived())
}

/// Whether two device names mean the same device of one task.
fn is_same_local(own: &str, asked: &str) -> bool {
    let local = |name: &str| DeviceSpec::parse(name).ok().map(|spec| (spec.kind, spec.id));
    own == asked || local(own) == local(asked)
}

/// A tensor that is read from its file by the worker's threads, as fast as it is sent.
struct FromFile {
    worker: Arc<Worker>,
    key: String,
    stored: Arc<dyn Stored>,
    /// None while a piece is being read.
    pieces: Option<StoredPieces>,
}

impl Stream for FromFile {
    fn dtype(&self) -> DType {
        self.stored.dtype()
    }

    fn shape(&self) -> &Shape {
        self.stored.shape()
    }

    fn next(&mut self) -> Future<'_, Option<Bytes>> {
        Box::pin(async move {
            let mut pieces = self.pieces.take().ok_or_else(|| internal!("a stored tensor is read twice"))?;
            let (answer, wait) = oneshot::channel();
            self.worker.threads.spawn(Box::new(move || {
                let piece = pieces();
                drop(answer.send((pieces, piece)));
            }));
            let (pieces, piece) = wait.await.map_err(|_| internal!("the reader of a stored tensor is gone"))?;
            self.pieces = Some(pieces);
            if let Ok(Some(bytes)) = &piece {
                self.worker.counters.went(&self.key, bytes.len());
            }
            piece.map_err(|error| from_task(error, &self.worker.name))
        })
    }
}

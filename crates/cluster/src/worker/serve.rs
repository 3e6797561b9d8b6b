//! Answers other tasks that ask for tensors of steps that run here.

use crate::RecvTensor;
use crate::api::from_task;
use crate::worker::Worker;
use exec::Sent;
use futures_channel::oneshot;
use graph::{DeviceSpec, RendezvousKey};
use op::{OpenedTensor, Received, TensorStream};
use status::{Result, aborted, invalid};
use std::sync::Arc;
use std::task::Poll;

/// Waits for a tensor that a step here sends.
pub(crate) async fn recv_tensor(worker: Arc<Worker>, request: RecvTensor) -> Result<Received> {
    let (tensor, dead) = sent(&worker, &request).await?.read().map_err(|error| from_task(error, &worker.name))?;
    worker.counters.sent(&request.key, tensor.byte_size());
    Ok((tensor, dead))
}

/// Like `recv_tensor`, but a large tensor that is in a file is read as its receiver pulls.
pub(crate) async fn open_tensor(worker: Arc<Worker>, request: RecvTensor) -> Result<OpenedTensor> {
    let (tensor, dead) = match sent(&worker, &request).await? {
        Sent::Tensor(tensor, dead) => (tensor, dead),
        Sent::Stored(stored) => {
            let threads = worker.threads.clone();
            if let Some(stream) = stored.stream(Arc::new(move |work| threads.spawn(work))) {
                return Ok(OpenedTensor::Stream(counted(worker, request.key, stream)));
            }
            (stored.read().map_err(|error| from_task(error, &worker.name))?, false)
        }
    };
    worker.counters.sent(&request.key, tensor.byte_size());
    Ok(OpenedTensor::Whole((tensor, dead)))
}

/// Counts the bytes that are sent, and names this task in errors.
fn counted(worker: Arc<Worker>, key: String, mut stream: TensorStream) -> TensorStream {
    let (dtype, shape) = (stream.dtype(), stream.shape().clone());
    TensorStream::new(dtype, shape, move |cx| {
        let chunk = stream.poll_next(cx);
        if let Poll::Ready(Ok(Some(bytes))) = &chunk {
            worker.counters.sent(&key, bytes.len());
        }
        chunk.map_err(|error| from_task(error, &worker.name))
    })
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
    // This task reports the error to the master of the step itself, so for the caller it is only a consequence.
    sent.map_err(|error| from_task(error, &worker.name).derived())
}

/// Whether two names mean the same device of one task.
fn is_same_local(own: &str, requested: &str) -> bool {
    let local = |name: &str| DeviceSpec::parse(name).ok().map(|spec| (spec.kind, spec.id));
    own == requested || local(own) == local(requested)
}

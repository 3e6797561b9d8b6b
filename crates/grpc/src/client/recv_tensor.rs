//! RecvTensor without copies: the bytes of an answer are written directly into the tensor's buffer.

use crate::client::call;
use crate::client::link::Connection;
use crate::wire::extensions::{ACCEPTS_BATCHES, RAW_CONTENT, RECV_TENSOR, RECV_TENSORS};
use crate::wire::recv_batch::BatchReader;
use crate::wire::recv_tensor::{Incoming, ReceivedTensor, message};
use crate::wire::{self, encode_recv_tensor};
use bytes::Bytes;
use cluster::{Deliver, RecvTensor};
use http_body_util::Full;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tonic::body::Body;
use tonic::{Code, Status};

/// Requests a tensor and waits for it, without a time limit.
pub(super) async fn recv_tensor(connection: Arc<Connection>, request: RecvTensor) -> Result<ReceivedTensor, Status> {
    let (raw, body) = send(&connection, RECV_TENSOR, encode(request).map_err(wire::status)?).await?;
    let mut incoming = Incoming::new(raw).map_err(wire::status)?;
    call::read(&connection, body, |data| incoming.push(data).map_err(wire::status)).await?;
    incoming.finish().map_err(wire::status)
}

/// Requests several tensors in one call, and delivers each as soon as it is there.
pub(super) async fn recv_tensors(
    connection: Arc<Connection>,
    requests: Vec<RecvTensor>,
    mut deliver: Deliver,
) -> Result<(), Status> {
    let (mut messages, mut reader) = (Vec::new(), BatchReader::new(requests.len()));
    for request in requests {
        messages.extend_from_slice(&encode(request).map_err(wire::status)?);
    }
    let receive = async {
        let (_, body) = send(&connection, RECV_TENSORS, messages.into()).await?;
        call::read(&connection, body, |data| {
            let done = |index, answer: status::Result<ReceivedTensor>| {
                deliver(index, answer.map(|received| (received.tensor, received.is_dead)));
            };
            reader.push(data, done).map_err(wire::status)
        })
        .await
    };
    receive.await.map_err(|status| match status.code() {
        // Another program runs at this address now, which does not know the steps of the old one.
        Code::Unimplemented => {
            connection.accepts_batches.store(false, Ordering::Relaxed);
            Status::unavailable(status.message())
        }
        _ => status,
    })
}

/// The message that requests a tensor.
pub(super) fn encode(request: RecvTensor) -> status::Result<Bytes> {
    message(&encode_recv_tensor(request))
}

/// Sends a request; returns the size of raw content in the answer, if there is any, and the body of the answer.
pub(super) async fn send(
    connection: &Connection,
    path: &'static str,
    request: Bytes,
) -> Result<(Option<usize>, Body), Status> {
    let request = call::post(path).header(RAW_CONTENT, "1").body(Body::new(Full::new(request)));
    let answer = call::send(connection, request).await?;
    if path == RECV_TENSOR {
        connection.accepts_batches.store(answer.headers().contains_key(ACCEPTS_BATCHES), Ordering::Relaxed);
    }
    let raw = answer.headers().get(RAW_CONTENT).and_then(|bytes| bytes.to_str().ok()?.parse().ok());
    Ok((raw, answer.into_body()))
}

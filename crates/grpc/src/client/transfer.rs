//! RecvTensor without copies: frames of the answer go straight into the tensor's block.

use crate::client::bulk;
use crate::client::link::Line;
use crate::server::{PATH, RAW, TAKES_SEVERAL};
use crate::wire;
use crate::wire::transfer::{Incoming, Received, message};
use bytes::Bytes;
use cluster::RecvTensor;
use http_body_util::Full;
use status::Error;
use std::sync::Arc;
use tonic::Status;
use tonic::body::Body;

/// Asks for a tensor and waits for it, however long that takes.
pub(crate) async fn recv_tensor(line: Arc<Line>, id: i64, call: RecvTensor) -> Result<Received, Status> {
    let question = request(id, call).map_err(wire::status)?;
    let (raw, body) = ask(&line, PATH, question).await?;
    let mut incoming = Incoming::new(raw).map_err(wire::status)?;
    bulk::read(&line, body, |data| incoming.push(data).map_err(wire::status)).await?;
    incoming.finish().map_err(|error: Error| wire::status(error))
}

/// The message that asks for a tensor.
pub(super) fn request(id: i64, call: RecvTensor) -> status::Result<Bytes> {
    message(&wire::encode_recv_tensor(wire::Numbered { id, call }))
}

/// Sends a request; gives the body of the answer, and the bytes of raw content in it if there are any.
pub(super) async fn ask(line: &Line, path: &'static str, request: Bytes) -> Result<(Option<usize>, Body), Status> {
    let answer = bulk::send(line, bulk::post(path).header(RAW, "1").body(Body::new(Full::new(request)))).await?;
    if path == PATH {
        line.together.is_understood(answer.headers().contains_key(TAKES_SEVERAL));
    }
    let raw = answer.headers().get(RAW).and_then(|bytes| bytes.to_str().ok()?.parse().ok());
    Ok((raw, answer.into_body()))
}

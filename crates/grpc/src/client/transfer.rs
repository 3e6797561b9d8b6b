//! RecvTensor without copies: frames of the answer go straight into the tensor's block.

use crate::client::link::Line;
use crate::server::{PATH, RAW, TAKES_SEVERAL};
use crate::wire;
use crate::wire::transfer::{Incoming, Received, message};
use bytes::Bytes;
use cluster::RecvTensor;
use http_body_util::{BodyExt, Full};
use status::Error;
use std::sync::Arc;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::{Code, Status};

/// Asks for a tensor and waits for it, however long that takes.
pub(crate) async fn recv_tensor(line: Arc<Line>, id: i64, call: RecvTensor) -> Result<Received, Status> {
    let question = request(id, call).map_err(wire::status)?;
    let (raw, mut body) = ask(&line, PATH, question).await?;
    let mut incoming = Incoming::new(raw).map_err(wire::status)?;
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) => {
                line.hear();
                incoming.push(&data).map_err(wire::status)?;
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    check_end(trailers.as_ref())?;
    incoming.finish().map_err(|error: Error| wire::status(error))
}

/// The message that asks for a tensor.
pub(super) fn request(id: i64, call: RecvTensor) -> status::Result<Bytes> {
    message(&wire::encode_recv_tensor(wire::Numbered { id, call }))
}

/// Sends a request; gives the body of the answer, and the bytes of raw content in it if there are any.
pub(super) async fn ask(line: &Line, path: &'static str, request: Bytes) -> Result<(Option<usize>, Body), Status> {
    let answer = send(line, path, request).await?;
    line.hear();
    if let Some(status) = Status::from_header_map(answer.headers()).filter(|status| status.code() != Code::Ok) {
        return Err(status);
    }
    if answer.status() != http::StatusCode::OK {
        return Err(Status::unknown(format!("grpc-status header missing, HTTP status {}", answer.status())));
    }
    if answer.headers().contains_key(TAKES_SEVERAL) {
        line.together.is_understood();
    }
    let raw = answer.headers().get(RAW).and_then(|bytes| bytes.to_str().ok()?.parse().ok());
    Ok((raw, answer.into_body()))
}

/// What the end of an answer says.
pub(super) fn check_end(trailers: Option<&http::HeaderMap>) -> Result<(), Status> {
    match trailers.and_then(Status::from_header_map) {
        Some(status) if status.code() == Code::Ok => Ok(()),
        Some(status) => Err(status),
        None => Err(Status::unknown("protocol error: missing grpc-status trailer")),
    }
}

async fn send(line: &Line, path: &'static str, request: Bytes) -> Result<http::Response<Body>, Status> {
    let request = http::Request::post(path)
        .version(http::Version::HTTP_2)
        .header(http::header::TE, "trailers")
        .header(http::header::CONTENT_TYPE, tonic::metadata::GRPC_CONTENT_TYPE)
        .header(RAW, "1")
        .body(Body::new(Full::new(request)))
        .map_err(|error| Status::internal(error.to_string()))?;
    let mut channel = line.channel.clone();
    let failed = |error: tonic::transport::Error| Status::from_error(error.into());
    std::future::poll_fn(|cx| channel.poll_ready(cx)).await.map_err(failed)?;
    channel.call(request).await.map_err(failed)
}

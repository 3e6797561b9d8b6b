//! Calls whose messages hold tensors: neither what is sent nor what comes back is copied on its way.

use crate::client::link::Line;
use crate::wire;
use crate::wire::split::{Apart, Form, Splitter};
use bytes::Bytes;
use futures_util::stream;
use http::HeaderMap;
use http::request::Builder;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use prost::Message;
use std::convert::Infallible;
use std::time::Duration;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::{Code, Status};

/// The most digits that a deadline may have on the wire.
const LONGEST_DEADLINE: u128 = 99_999_999;

/// Sends a message in pieces; gives the one of the answer, its large contents apart, and its headers.
pub(super) async fn call<M: Message + Default>(
    line: &Line,
    request: Builder,
    message: Vec<Bytes>,
    form: &'static Form,
) -> Result<(Apart<M>, HeaderMap), Status> {
    let frames = stream::iter(message.into_iter().map(|piece| Ok::<_, Infallible>(Frame::data(piece))));
    let answer = send(line, request.body(Body::new(StreamBody::new(frames)))).await?;
    let mut splitter = Splitter::new(form);
    let (head, body) = answer.into_parts();
    read(line, body, |data| splitter.push(data).map_err(wire::status)).await?;
    Ok((splitter.finish().map_err(wire::status)?, head.headers))
}

/// The beginning of a request.
pub(super) fn post(path: &'static str) -> Builder {
    http::Request::post(path)
        .version(http::Version::HTTP_2)
        .header(http::header::TE, "trailers")
        .header(http::header::CONTENT_TYPE, tonic::metadata::GRPC_CONTENT_TYPE)
}

/// A request that is to be answered within this time.
pub(super) fn within(request: Builder, timeout: Option<Duration>) -> Builder {
    let Some(timeout) = timeout else { return request };
    let deadline = match timeout.as_millis() {
        milliseconds if milliseconds <= LONGEST_DEADLINE => format!("{milliseconds}m"),
        _ => format!("{}S", u128::from(timeout.as_secs()).min(LONGEST_DEADLINE)),
    };
    request.header("grpc-timeout", deadline)
}

/// Sends a request; gives the answer, unless it is an error from the start.
pub(super) async fn send(
    line: &Line,
    request: http::Result<http::Request<Body>>,
) -> Result<http::Response<Body>, Status> {
    let request = request.map_err(|error| Status::internal(error.to_string()))?;
    let mut channel = line.channel.clone();
    let failed = |error: tonic::transport::Error| Status::from_error(error.into());
    std::future::poll_fn(|cx| channel.poll_ready(cx)).await.map_err(failed)?;
    let answer = channel.call(request).await.map_err(failed)?;
    line.hear();
    if let Some(status) = Status::from_header_map(answer.headers()).filter(|status| status.code() != Code::Ok) {
        return Err(status);
    }
    if answer.status() != http::StatusCode::OK {
        return Err(Status::unknown(format!("grpc-status header missing, HTTP status {}", answer.status())));
    }
    Ok(answer)
}

/// Reads an answer to its end, piece by piece.
pub(super) async fn read(
    line: &Line,
    mut body: Body,
    mut piece: impl FnMut(&[u8]) -> Result<(), Status>,
) -> Result<(), Status> {
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) => {
                line.hear();
                piece(&data)?;
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    check_end(trailers.as_ref())
}

/// What the end of an answer says.
pub(super) fn check_end(trailers: Option<&HeaderMap>) -> Result<(), Status> {
    match trailers.and_then(Status::from_header_map) {
        Some(status) if status.code() == Code::Ok => Ok(()),
        Some(status) => Err(status),
        None => Err(Status::unknown("protocol error: missing grpc-status trailer")),
    }
}

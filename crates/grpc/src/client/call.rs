//! Calls whose messages contain tensors: neither the request nor the answer is copied.

use crate::client::link::Connection;
use crate::wire;
use crate::wire::message_reader::{Layout, MessageReader, SplitMessage};
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

/// The largest number of a timeout on the wire, which has at most eight digits.
const MAX_TIMEOUT: u128 = 99_999_999;

/// Sends a message in pieces; returns the message of the answer, separate from its large contents, and its headers.
pub(super) async fn call<M: Message + Default>(
    connection: &Connection,
    request: Builder,
    message: Vec<Bytes>,
    layout: &'static Layout,
) -> Result<(SplitMessage<M>, HeaderMap), Status> {
    let frames = stream::iter(message.into_iter().map(|piece| Ok::<_, Infallible>(Frame::data(piece))));
    let answer = send(connection, request.body(Body::new(StreamBody::new(frames)))).await?;
    let mut reader = MessageReader::new(layout);
    let (head, body) = answer.into_parts();
    read(connection, body, |data| reader.push(data).map_err(wire::status)).await?;
    Ok((reader.finish().map_err(wire::status)?, head.headers))
}

/// The beginning of a request.
pub(super) fn post(path: &'static str) -> Builder {
    http::Request::post(path)
        .version(http::Version::HTTP_2)
        .header(http::header::TE, "trailers")
        .header(http::header::CONTENT_TYPE, tonic::metadata::GRPC_CONTENT_TYPE)
}

/// A request with a timeout.
pub(super) fn within(request: Builder, timeout: Option<Duration>) -> Builder {
    let Some(timeout) = timeout else { return request };
    let deadline = match timeout.as_millis() {
        milliseconds if milliseconds <= MAX_TIMEOUT => format!("{milliseconds}m"),
        _ => format!("{}S", u128::from(timeout.as_secs()).min(MAX_TIMEOUT)),
    };
    request.header("grpc-timeout", deadline)
}

/// Sends a request; returns the answer, unless its headers are an error.
pub(super) async fn send(
    connection: &Connection,
    request: http::Result<http::Request<Body>>,
) -> Result<http::Response<Body>, Status> {
    let request = request.map_err(|error| Status::internal(error.to_string()))?;
    let mut channel = connection.channel.clone();
    let failed = |error: tonic::transport::Error| Status::from_error(error.into());
    std::future::poll_fn(|cx| channel.poll_ready(cx)).await.map_err(failed)?;
    let answer = channel.call(request).await.map_err(failed)?;
    connection.record_activity();
    if let Some(status) = Status::from_header_map(answer.headers()).filter(|status| status.code() != Code::Ok) {
        return Err(status);
    }
    if answer.status() != http::StatusCode::OK {
        return Err(Status::unknown(format!("grpc-status header missing, HTTP status {}", answer.status())));
    }
    Ok(answer)
}

/// Reads the body of an answer; `piece` gets its bytes as they arrive.
pub(super) async fn read(
    connection: &Connection,
    mut body: Body,
    mut piece: impl FnMut(&[u8]) -> Result<(), Status>,
) -> Result<(), Status> {
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) => {
                connection.record_activity();
                piece(&data)?;
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    check_end(trailers.as_ref())
}

/// Whether the trailers of an answer say that it succeeded.
pub(super) fn check_end(trailers: Option<&HeaderMap>) -> Result<(), Status> {
    match trailers.and_then(Status::from_header_map) {
        Some(status) if status.code() == Code::Ok => Ok(()),
        Some(status) => Err(status),
        None => Err(Status::unknown("protocol error: missing grpc-status trailer")),
    }
}

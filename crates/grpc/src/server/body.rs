//! Bodies of requests and answers that contain tensors: read and sent without copying the tensors.

use crate::wire;
use crate::wire::message_reader::{Layout, MessageReader, SplitMessage};
use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt;
use prost::Message;
use status::{Error, Result, cancelled};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tensor::Tensor;
use tonic::body::Body;

/// The tensors of an answer whose body contains an error.
pub(super) const NO_TENSORS: &[Tensor] = &[];

/// Reads the message of a request.
pub(super) async fn read<M: Message + Default>(mut body: Body, layout: &'static Layout) -> Result<SplitMessage<M>> {
    let mut reader = MessageReader::new(layout);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| cancelled!("The client stopped sending its request: {error}"))?;
        if let Ok(data) = frame.into_data() {
            reader.push(&data)?;
        }
    }
    reader.finish()
}

/// An answer of gRPC with this body.
pub(super) fn answer(body: Body) -> http::Response<Body> {
    let mut answer = http::Response::new(body);
    answer.headers_mut().insert(http::header::CONTENT_TYPE, tonic::metadata::GRPC_CONTENT_TYPE);
    answer
}

/// The trailers of an answer, which say how it ended.
pub(super) fn trailers(error: Option<Error>) -> http::HeaderMap {
    let status = error.map_or_else(|| tonic::Status::ok(""), wire::status);
    let mut trailers = http::HeaderMap::new();
    if status.add_header(&mut trailers).is_err() {
        trailers.insert("grpc-status", http::HeaderValue::from(status.code() as i32));
    }
    trailers
}

/// A body that sends pieces of bytes as they are, and ends with success.
pub(super) struct Pieces {
    left: VecDeque<Bytes>,
    ended: bool,
}

impl Pieces {
    /// The body of these pieces.
    pub fn body(pieces: Vec<Bytes>) -> Body {
        Body::new(Pieces { left: pieces.into(), ended: false })
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
        if let Some(piece) = self.left.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if std::mem::replace(&mut self.ended, true) {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(Ok(Frame::trailers(trailers(None)))))
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}

//! RecvTensor without copies: the pieces of its answer are the tensor's own bytes.

use crate::server::SMALL_FRAME;
use crate::server::before::{Answering, Bulk};
use crate::server::recent::Recent;
use crate::wire::{self, pieces, transfer};
use bytes::Bytes;
use cluster::{Arriving, WorkerClient};
use futures_util::stream::{self, StreamExt};
use http_body::Frame;
use http_body_util::{BodyExt, Limited, StreamBody};
use status::{Result, invalid, unimplemented_op};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};
use tonic::body::Body;

/// The method's path.
pub(crate) const PATH: &str = "/tensorflow.WorkerService/RecvTensor";
/// In a request: the asking task understands raw content. In an answer: how many bytes of it follow.
pub(crate) const RAW: &str = "flowgrid-raw-content";
/// A request is a key and a few numbers.
const MAX_REQUEST: usize = 1 << 20;

/// The transfers of the worker service.
#[derive(Clone)]
pub(crate) struct Transfers {
    pub worker: Arc<dyn WorkerClient>,
    pub recent: Arc<Recent>,
}

impl Bulk for Transfers {
    const PATHS: &'static [&'static str] = &[PATH];

    fn answer(&self, request: http::Request<Body>) -> Answering {
        let Transfers { worker, recent } = self.clone();
        Box::pin(async move {
            let answer = answer(&*worker, &recent, request).await;
            Ok(answer.unwrap_or_else(|error| wire::status(error).into_http()))
        })
    }
}

async fn answer(
    worker: &dyn WorkerClient,
    recent: &Recent,
    request: http::Request<Body>,
) -> Result<http::Response<Body>> {
    let raw_allowed = request.headers().contains_key(RAW);
    let body = Limited::new(request.into_body(), MAX_REQUEST).collect().await;
    let body = body.map_err(|error| invalid!("The request of RecvTensor cannot be read: {error}"))?;
    let request = wire::decode_recv_tensor(unframed(body.to_bytes())?)?;
    recent.check(request.id, "RecvTensor (GrpcWorker)", || {
        format!("step_id: {} rendezvous_key: \"{}\" request_id: {}", request.call.step_id, request.call.key, request.id)
    })?;
    let arriving = worker.open_tensor(request.call).await?;
    let now = now_micros();
    let (body, raw) = match arriving {
        Arriving::Whole(tensor, is_dead) => {
            let outgoing = transfer::encode(&tensor, is_dead, now, raw_allowed)?;
            (Pieces::body(outgoing.pieces), outgoing.raw)
        }
        Arriving::Pieces(stream) => {
            let outgoing = pieces::encode(stream.dtype(), stream.shape(), now, raw_allowed)?;
            (streamed(outgoing.first, stream, outgoing.raw.is_some()), outgoing.raw)
        }
    };
    let mut answer = answered(body);
    if let Some(bytes) = raw {
        answer.headers_mut().insert(RAW, http::HeaderValue::from(bytes as u64));
    }
    Ok(answer)
}

/// Microseconds since 1970, as answers tell when they were sent.
pub(crate) fn now_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as i64)
}

/// A body whose content is read as it is sent, in small frames; raw content goes in messages of its own. An error ends
/// it.
fn streamed(first: Bytes, content: Box<dyn cluster::Stream>, raw: bool) -> Body {
    let rest = stream::unfold(Some(content), move |content| async move {
        let mut content = content?;
        let piece = match content.next().await {
            Ok(Some(bytes)) if raw => transfer::prefix(bytes.len()).map(|prefix| vec![prefix.freeze(), bytes]),
            Ok(Some(bytes)) => Ok(vec![bytes]),
            Ok(None) => return Some((vec![Frame::trailers(trailers(None))], None)),
            Err(error) => Err(error),
        };
        Some(match piece {
            Ok(piece) => (piece.into_iter().flat_map(small).map(Frame::data).collect(), Some(content)),
            Err(error) => (vec![Frame::trailers(trailers(Some(error)))], None),
        })
    });
    let frames = stream::iter([vec![Frame::data(first)]]).chain(rest).flat_map(stream::iter);
    Body::new(StreamBody::new(frames.map(Ok::<_, Infallible>)))
}

/// Bytes in pieces of the size of small frames.
fn small(mut bytes: Bytes) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(move || {
        let next = bytes.split_to(bytes.len().min(SMALL_FRAME as usize));
        (!next.is_empty()).then_some(next)
    })
}

/// How an answer ended.
fn trailers(error: Option<status::Error>) -> http::HeaderMap {
    let status = error.map_or_else(|| tonic::Status::ok(""), wire::status);
    let mut trailers = http::HeaderMap::new();
    if status.add_header(&mut trailers).is_err() {
        trailers.insert("grpc-status", http::HeaderValue::from(status.code() as i32));
    }
    trailers
}

/// The one message of a request, without its prefix.
fn unframed(body: Bytes) -> Result<Bytes> {
    match body.first_chunk::<5>() {
        Some([1, ..]) => Err(unimplemented_op!("RecvTensor does not take compressed requests")),
        Some(&[_, a, b, c, d]) if u32::from_be_bytes([a, b, c, d]) as usize == body.len() - 5 => Ok(body.slice(5..)),
        _ => Err(invalid!("The request of RecvTensor is not one message: {} bytes", body.len())),
    }
}

/// A body that sends its pieces as they are, then says that all went well.
pub(crate) struct Pieces {
    left: VecDeque<Bytes>,
    ended: bool,
}

impl Pieces {
    /// These pieces as the body of an answer.
    pub fn body(pieces: Vec<Bytes>) -> Body {
        Body::new(Pieces { left: pieces.into(), ended: false })
    }
}

/// An answer with this body, which says at its end how it went.
pub(crate) fn answered(body: Body) -> http::Response<Body> {
    let mut answer = http::Response::new(body);
    answer.headers_mut().insert(http::header::CONTENT_TYPE, tonic::metadata::GRPC_CONTENT_TYPE);
    answer
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

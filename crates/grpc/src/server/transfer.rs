//! RecvTensor without copies: the pieces of its answer are the tensor's own bytes.

use crate::server::SMALL_FRAME;
use crate::server::before::{Answering, Bulk};
use crate::server::recent::Recent;
use crate::server::run::{self, RUN_GRAPH};
use crate::wire::together::{self, Kind};
use crate::wire::{self, tensor_stream, transfer};
use bytes::Bytes;
use cluster::{OpenedTensor, TensorStream, WorkerClient};
use futures_util::stream::{self, BoxStream, FuturesUnordered, StreamExt};
use http_body::Frame;
use http_body_util::{BodyExt, Limited, StreamBody};
use status::{Result, invalid, unimplemented_op};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};
use tonic::body::Body;

/// The method's path.
pub(crate) const PATH: &str = "/tensorflow.WorkerService/RecvTensor";
/// In a request: the asking task understands raw content. In an answer: how many bytes of it follow.
pub(crate) const RAW: &str = "flowgrid-raw-content";
/// The same for several tensors at once, between tasks of ours,
pub(crate) const TOGETHER: &str = "/tensorflow.WorkerService/RecvTensors";
/// which an answer says that this task takes.
pub(crate) const TAKES_SEVERAL: &str = "flowgrid-takes-several";
/// A request is a key and a few numbers, or some hundreds of them.
const MAX_REQUEST: usize = 1 << 20;

/// What moves tensors in the worker service.
#[derive(Clone)]
pub(crate) struct Transfers {
    pub worker: Arc<dyn WorkerClient>,
    pub recent: Arc<Recent>,
}

impl Bulk for Transfers {
    const PATHS: &'static [&'static str] = &[PATH, TOGETHER, RUN_GRAPH];

    fn answer(&self, request: http::Request<Body>) -> Answering {
        let Transfers { worker, recent } = self.clone();
        Box::pin(async move {
            let answer = match request.uri().path() {
                TOGETHER => several(worker, &recent, request).await,
                RUN_GRAPH => run::answer(&*worker, &recent, request).await,
                _ => answer(&*worker, &recent, request).await,
            };
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
    let request = unframed(collected(request).await?)?;
    let (body, raw) = match opened(worker, recent, request).await? {
        OpenedTensor::Whole((tensor, is_dead)) => {
            let outgoing = transfer::encode(&tensor, is_dead, now_micros(), raw_allowed)?;
            (Pieces::body(outgoing.pieces), outgoing.raw)
        }
        OpenedTensor::Stream(stream) => {
            let outgoing = tensor_stream::encode(stream.dtype(), stream.shape(), now_micros(), raw_allowed)?;
            (streamed(outgoing.first, stream, outgoing.raw.is_some()), outgoing.raw)
        }
    };
    let mut answer = answered(body);
    answer.headers_mut().insert(TAKES_SEVERAL, http::HeaderValue::from_static("1"));
    if let Some(bytes) = raw {
        answer.headers_mut().insert(RAW, http::HeaderValue::from(bytes as u64));
    }
    Ok(answer)
}

/// Answers several requests in one body, each as soon as its tensor is there.
async fn several(
    worker: Arc<dyn WorkerClient>,
    recent: &Arc<Recent>,
    request: http::Request<Body>,
) -> Result<http::Response<Body>> {
    let mut body = collected(request).await?;
    let asked = FuturesUnordered::new();
    while !body.is_empty() {
        let message = split_message(&mut body)?;
        let (place, worker, recent) = (asked.len(), worker.clone(), recent.clone());
        asked.push(async move { (place, opened(&*worker, &recent, message).await) });
    }
    let chunks = asked.flat_map(|(place, opened)| match opened.and_then(|opened| chunks(place, opened)) {
        Ok(chunks) => chunks,
        Err(error) => stream::iter([vec![together::failed(place, &error)]]).boxed(),
    });
    let end = stream::once(async { Frame::trailers(trailers(None)) });
    let frames = chunks.flat_map(stream::iter).map(Frame::data).chain(end);
    Ok(answered(Body::new(StreamBody::new(frames.map(Ok::<_, Infallible>)))))
}

/// One answer among several, as it is read.
fn chunks(place: usize, opened: OpenedTensor) -> Result<BoxStream<'static, Vec<Bytes>>> {
    let content = match opened {
        OpenedTensor::Whole((tensor, is_dead)) => {
            let outgoing = transfer::encode(&tensor, is_dead, now_micros(), true)?;
            return Ok(stream::iter([together::whole(place, outgoing)]).boxed());
        }
        OpenedTensor::Stream(content) => content,
    };
    let outgoing = tensor_stream::encode(content.dtype(), content.shape(), now_micros(), true)?;
    let mut first: Vec<Bytes> = outgoing.raw.map(|size| together::raw(place, size)).into_iter().collect();
    first.extend(together::chunk(place, Kind::More, vec![outgoing.first]));
    let rest = contents(content, outgoing.raw.is_some()).map(move |piece| match piece {
        Ok(Some(bytes)) => {
            // The first piece of a chunk is copied: none.
            let pieces = std::iter::once(Bytes::new()).chain(bytes.into_iter().flat_map(small));
            together::chunk(place, Kind::More, pieces.collect())
        }
        Ok(None) => together::chunk(place, Kind::Last, Vec::new()),
        Err(error) => vec![together::failed(place, &error)],
    });
    Ok(stream::iter([first]).chain(rest).boxed())
}

/// Waits for the tensor that a request asks for.
async fn opened(worker: &dyn WorkerClient, recent: &Recent, request: Bytes) -> Result<OpenedTensor> {
    let request = wire::decode_recv_tensor(request)?;
    recent.check(request.id, "RecvTensor (GrpcWorker)", || {
        format!("step_id: {} rendezvous_key: \"{}\" request_id: {}", request.call.step_id, request.call.key, request.id)
    })?;
    worker.open_tensor(request.call).await
}

async fn collected(request: http::Request<Body>) -> Result<Bytes> {
    let body = Limited::new(request.into_body(), MAX_REQUEST).collect().await;
    Ok(body.map_err(|error| invalid!("The request of RecvTensor cannot be read: {error}"))?.to_bytes())
}

/// Microseconds since 1970, as answers tell when they were sent.
pub(crate) fn now_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as i64)
}

/// The content of a tensor as it is read, raw content in messages of its own; none at its end, which an error is too.
fn contents(content: TensorStream, raw: bool) -> impl futures_util::Stream<Item = Result<Option<Vec<Bytes>>>> {
    stream::unfold(Some(content), move |content| async move {
        let mut content = content?;
        let piece = match poll_fn(|cx| content.poll_next(cx)).await {
            Ok(Some(bytes)) if raw => transfer::prefix(bytes.len()).map(|prefix| Some(vec![prefix.freeze(), bytes])),
            Ok(Some(bytes)) => Ok(Some(vec![bytes])),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        let goes_on = matches!(piece, Ok(Some(_)));
        Some((piece, goes_on.then_some(content)))
    })
}

/// A body whose content is read as it is sent, in small frames; raw content goes in messages of its own. An error ends
/// it.
fn streamed(first: Bytes, content: TensorStream, raw: bool) -> Body {
    let rest = contents(content, raw).map(|piece| match piece {
        Ok(Some(piece)) => piece.into_iter().flat_map(small).map(Frame::data).collect(),
        Ok(None) => vec![Frame::trailers(trailers(None))],
        Err(error) => vec![Frame::trailers(trailers(Some(error)))],
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
fn unframed(mut body: Bytes) -> Result<Bytes> {
    let message = split_message(&mut body)?;
    if body.is_empty() { Ok(message) } else { Err(not_messages(body.len())) }
}

/// Takes the first message off, without its prefix.
fn split_message(body: &mut Bytes) -> Result<Bytes> {
    match body.first_chunk::<5>() {
        Some([1, ..]) => Err(unimplemented_op!("RecvTensor does not take compressed requests")),
        Some(&[_, a, b, c, d]) => {
            let end = u32::from_be_bytes([a, b, c, d]) as usize + 5;
            if end > body.len() {
                return Err(not_messages(body.len()));
            }
            Ok(body.split_to(end).slice(5..))
        }
        None => Err(not_messages(body.len())),
    }
}

fn not_messages(len: usize) -> status::Error {
    invalid!("The request of RecvTensor is not one message: {len} bytes are left")
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

//! RecvTensor without copies: the pieces of its answer are the tensor's own bytes.

use crate::server::SMALL_FRAME;
use crate::server::body::{self, Pieces, trailers};
use crate::wire::extensions::{ACCEPTS_BATCHES, RAW_CONTENT};
use crate::wire::recv_batch::{self, Kind};
use crate::wire::{self, recv_tensor as codec, tensor_stream};
use bytes::Bytes;
use cluster::{OpenedTensor, TensorStream, WorkerClient};
use futures_util::stream::{self, BoxStream, FuturesUnordered, StreamExt};
use http_body::Frame;
use http_body_util::{BodyExt, Limited, StreamBody};
use status::{Result, invalid, unimplemented_op};
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tonic::body::Body;

/// The limit for a request: a key and a few numbers, or some hundreds of them.
const MAX_REQUEST: usize = 1 << 20;

/// Answers a request for a tensor.
pub(super) async fn recv_tensor(
    worker: &dyn WorkerClient,
    request: http::Request<Body>,
) -> Result<http::Response<Body>> {
    let raw_allowed = request.headers().contains_key(RAW_CONTENT);
    let message = only_message(collected(request).await?)?;
    let (body, raw) = match open(worker, message).await? {
        OpenedTensor::Whole((tensor, is_dead)) => {
            let outgoing = codec::encode(&tensor, is_dead, now_micros(), raw_allowed)?;
            (Pieces::body(outgoing.pieces), outgoing.raw)
        }
        OpenedTensor::Stream(stream) => {
            let outgoing = tensor_stream::encode(stream.dtype(), stream.shape(), now_micros(), raw_allowed)?;
            (streamed(outgoing.first, stream, outgoing.raw.is_some()), outgoing.raw)
        }
    };
    let mut answer = body::answer(body);
    answer.headers_mut().insert(ACCEPTS_BATCHES, http::HeaderValue::from_static("1"));
    if let Some(bytes) = raw {
        answer.headers_mut().insert(RAW_CONTENT, http::HeaderValue::from(bytes as u64));
    }
    Ok(answer)
}

/// Answers several requests in one body, each as soon as its tensor is there.
pub(super) async fn recv_tensors(
    worker: Arc<dyn WorkerClient>,
    request: http::Request<Body>,
) -> Result<http::Response<Body>> {
    let mut messages = collected(request).await?;
    let requests = FuturesUnordered::new();
    while !messages.is_empty() {
        let message = split_message(&mut messages)?;
        let (index, worker) = (requests.len(), worker.clone());
        requests.push(async move { (index, open(&*worker, message).await) });
    }
    let parts = requests.flat_map(|(index, opened)| match opened.and_then(|opened| parts(index, opened)) {
        Ok(parts) => parts,
        Err(error) => stream::iter([vec![recv_batch::failed(index, &error)]]).boxed(),
    });
    let end = stream::once(async { Frame::trailers(trailers(None)) });
    let frames = parts.flat_map(stream::iter).map(Frame::data).chain(end);
    Ok(body::answer(Body::new(StreamBody::new(frames.map(Ok::<_, Infallible>)))))
}

/// One answer of several, in parts.
fn parts(index: usize, opened: OpenedTensor) -> Result<BoxStream<'static, Vec<Bytes>>> {
    let content = match opened {
        OpenedTensor::Whole((tensor, is_dead)) => {
            let outgoing = codec::encode(&tensor, is_dead, now_micros(), true)?;
            return Ok(stream::iter([recv_batch::whole(index, outgoing)]).boxed());
        }
        OpenedTensor::Stream(content) => content,
    };
    let outgoing = tensor_stream::encode(content.dtype(), content.shape(), now_micros(), true)?;
    let mut first: Vec<Bytes> = outgoing.raw.map(|size| recv_batch::raw(index, size)).into_iter().collect();
    first.extend(recv_batch::part(index, Kind::More, vec![outgoing.first]));
    let rest = contents(content, outgoing.raw.is_some()).map(move |chunk| match chunk {
        Ok(Some(bytes)) => {
            // The first piece of a part is copied, so it is empty.
            let pieces = std::iter::once(Bytes::new()).chain(bytes.into_iter().flat_map(small));
            recv_batch::part(index, Kind::More, pieces.collect())
        }
        Ok(None) => recv_batch::part(index, Kind::Last, Vec::new()),
        Err(error) => vec![recv_batch::failed(index, &error)],
    });
    Ok(stream::iter([first]).chain(rest).boxed())
}

/// Waits for the tensor that a request names.
async fn open(worker: &dyn WorkerClient, message: Bytes) -> Result<OpenedTensor> {
    worker.open_tensor(wire::decode_recv_tensor(message)?).await
}

async fn collected(request: http::Request<Body>) -> Result<Bytes> {
    let body = Limited::new(request.into_body(), MAX_REQUEST).collect().await;
    Ok(body.map_err(|error| invalid!("The request of RecvTensor cannot be read: {error}"))?.to_bytes())
}

/// Microseconds since 1970: answers say when they were sent.
pub(super) fn now_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as i64)
}

/// The chunks of a tensor as they are read, raw content in messages of its own; `None` or an error at the end.
fn contents(content: TensorStream, raw: bool) -> impl futures_util::Stream<Item = Result<Option<Vec<Bytes>>>> {
    stream::unfold(Some(content), move |content| async move {
        let mut content = content?;
        let chunk = match poll_fn(|cx| content.poll_next(cx)).await {
            Ok(Some(bytes)) if raw => codec::prefix(bytes.len()).map(|prefix| Some(vec![prefix.freeze(), bytes])),
            Ok(Some(bytes)) => Ok(Some(vec![bytes])),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        let continues = matches!(chunk, Ok(Some(_)));
        Some((chunk, continues.then_some(content)))
    })
}

/// A body whose content is read while it is sent, in small frames; raw content is in messages of its own. An error ends
/// it.
fn streamed(first: Bytes, content: TensorStream, raw: bool) -> Body {
    let rest = contents(content, raw).map(|chunk| match chunk {
        Ok(Some(bytes)) => bytes.into_iter().flat_map(small).map(Frame::data).collect(),
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

/// The message of a request that has one, without its prefix.
fn only_message(mut body: Bytes) -> Result<Bytes> {
    let message = split_message(&mut body)?;
    if body.is_empty() { Ok(message) } else { Err(malformed(body.len())) }
}

/// Removes the first message and returns it without its prefix.
fn split_message(body: &mut Bytes) -> Result<Bytes> {
    match body.first_chunk::<5>() {
        Some([1, ..]) => Err(unimplemented_op!("RecvTensor does not accept compressed requests")),
        Some(&[_, a, b, c, d]) => {
            let end = u32::from_be_bytes([a, b, c, d]) as usize + 5;
            if end > body.len() {
                return Err(malformed(body.len()));
            }
            Ok(body.split_to(end).slice(5..))
        }
        None => Err(malformed(body.len())),
    }
}

fn malformed(len: usize) -> status::Error {
    invalid!("The request of RecvTensor is not one message: {len} bytes are left")
}

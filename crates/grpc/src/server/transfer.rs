//! RecvTensor without copies: stands before the generated WorkerService and answers this one method itself,
//! with a body whose pieces are the tensor's own bytes.

use crate::server::recent::Recent;
use crate::wire::{self, transfer};
use bytes::Bytes;
use cluster::WorkerClient;
use http_body::Frame;
use http_body_util::{BodyExt, Limited};
use status::{Result, invalid, unimplemented_op};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service};
use tonic::server::NamedService;

/// The method's path.
pub(crate) const PATH: &str = "/tensorflow.WorkerService/RecvTensor";
/// In a request: the asking task understands raw content. In an answer: how many bytes of it follow.
pub(crate) const RAW: &str = "flowgrid-raw-content";
/// A request is a key and a few numbers.
const MAX_REQUEST: usize = 1 << 20;

/// The worker service with its bulk method in front.
#[derive(Clone)]
pub(crate) struct WithTransfer<S> {
    pub inner: S,
    pub worker: Arc<dyn WorkerClient>,
    pub recent: Arc<Recent>,
}

impl<S: NamedService> NamedService for WithTransfer<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for WithTransfer<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path() != PATH {
            return Box::pin(self.inner.call(request));
        }
        let (worker, recent) = (self.worker.clone(), self.recent.clone());
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
    let (tensor, is_dead) = worker.recv_tensor(request.call).await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as i64);
    let outgoing = transfer::encode(&tensor, is_dead, now, raw_allowed)?;
    let mut answer = Pieces::answer(outgoing.pieces);
    if let Some(bytes) = outgoing.raw {
        answer.headers_mut().insert(RAW, http::HeaderValue::from(bytes as u64));
    }
    Ok(answer)
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
    /// An answer that all went well, with this body.
    pub fn answer(pieces: Vec<Bytes>) -> http::Response<Body> {
        let mut answer = http::Response::new(Body::new(Pieces { left: pieces.into(), ended: false }));
        answer.headers_mut().insert(http::header::CONTENT_TYPE, tonic::metadata::GRPC_CONTENT_TYPE);
        answer
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
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}

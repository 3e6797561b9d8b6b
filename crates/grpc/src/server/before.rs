//! Methods that are answered before the generated service sees them: those that move tensors, without its copies.

use crate::server::inflate;
use crate::wire;
use std::convert::Infallible;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service};
use tonic::server::NamedService;

/// An answer under way.
pub(crate) type Answering = BoxFuture<http::Response<Body>, Infallible>;

/// Methods that move tensors.
pub(crate) trait Bulk: Clone + Send + Sync + 'static {
    /// Their paths.
    const PATHS: &'static [&'static str];

    /// Answers a request for one of them.
    fn answer(&self, request: http::Request<Body>) -> Answering;
}

/// A service with its bulk methods in front.
#[derive(Clone)]
pub(crate) struct Before<B, S> {
    pub bulk: B,
    pub inner: S,
}

impl<B, S: NamedService> NamedService for Before<B, S> {
    const NAME: &'static str = S::NAME;
}

impl<B: Bulk, S> Service<http::Request<Body>> for Before<B, S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Answering {
        if inflate::is_compressed(&request) {
            let mut service = self.clone();
            return Box::pin(async move {
                match inflate::inflated(request).await {
                    Ok(request) => service.call(request).await,
                    Err(error) => Ok(wire::status(error).into_http()),
                }
            });
        }
        match B::PATHS.contains(&request.uri().path()) {
            true => self.bulk.answer(request),
            false => Box::pin(self.inner.call(request)),
        }
    }
}

//! Methods that are answered before the generated service sees them: those that move tensors, without its copies.

use std::convert::Infallible;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service};
use tonic::server::NamedService;

/// An answer under way.
pub(crate) type Answering = BoxFuture<http::Response<Body>, Infallible>;

/// Methods that move tensors.
pub(crate) trait Bulk: Clone + Send + Sync + 'static {
    /// Answers a request, or gives it back when the method is another.
    fn answer(&self, request: http::Request<Body>) -> Result<Answering, http::Request<Body>>;
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
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Answering {
        self.bulk.answer(request).unwrap_or_else(|request| Box::pin(self.inner.call(request)))
    }
}

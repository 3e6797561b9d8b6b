//! Calls the method that a request names. Every method of the two services is one arm of a `match` on its path.

use crate::server::{MAX_MESSAGE, inflate};
use crate::wire;
use prost::Message;
use status::{Code, Error, Result};
use std::convert::Infallible;
use std::future::Future;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Response, Status};
use tonic_prost::ProstCodec;

/// The methods of a service.
pub(super) trait Methods: Clone + Send + Sync + 'static {
    /// The name of the service on the wire.
    const SERVICE: &'static str;

    /// Answers a request for a method.
    fn answer(
        self,
        method: &str,
        request: http::Request<Body>,
    ) -> impl Future<Output = Result<http::Response<Body>>> + Send;
}

/// A service that answers requests by its methods.
#[derive(Clone)]
pub(super) struct Dispatch<M>(pub M);

impl<M: Methods> NamedService for Dispatch<M> {
    const NAME: &'static str = M::SERVICE;
}

impl<M: Methods> Service<http::Request<Body>> for Dispatch<M> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let methods = self.0.clone();
        Box::pin(async move {
            let answer = async {
                let request =
                    if inflate::is_compressed(&request) { inflate::inflated(request).await? } else { request };
                let uri = request.uri().clone();
                methods.answer(uri.path().rsplit('/').next().unwrap_or_default(), request).await
            };
            Ok(answer.await.unwrap_or_else(|error| wire::status(error).into_http()))
        })
    }
}

/// The error for a method that the service does not have, as gRPC libraries give it: without a text.
pub(super) fn unknown_method() -> Error {
    Error::new(Code::Unimplemented, "")
}

/// Answers a request whose message and answer are small: decodes it, calls `method` and encodes the answer.
pub(super) async fn unary<S, Q, A, F>(
    request: http::Request<Body>,
    service: S,
    method: fn(S, Q) -> F,
) -> Result<http::Response<Body>>
where
    S: Clone + Send + 'static,
    Q: Message + Default + Send + 'static,
    A: Message + Send + 'static,
    F: Future<Output = Result<A>> + Send + 'static,
{
    let limit = Some(MAX_MESSAGE);
    let mut grpc = Grpc::new(ProstCodec::<A, Q>::default()).apply_max_message_size_config(limit, limit);
    Ok(grpc.unary(Unary { service, method }, request).await)
}

struct Unary<S, Q, F> {
    service: S,
    method: fn(S, Q) -> F,
}

impl<S, Q, A, F> UnaryService<Q> for Unary<S, Q, F>
where
    S: Clone,
    F: Future<Output = Result<A>> + Send + 'static,
{
    type Response = A;
    type Future = BoxFuture<Response<A>, Status>;

    fn call(&mut self, request: tonic::Request<Q>) -> Self::Future {
        let answer = (self.method)(self.service.clone(), request.into_inner());
        Box::pin(async move { answer.await.map(Response::new).map_err(wire::status) })
    }
}

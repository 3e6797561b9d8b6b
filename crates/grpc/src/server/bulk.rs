//! Steps and callables without copies of what is fed and fetched: stands before the generated MasterService and
//! answers these two methods itself.

use crate::server::master::Service;
use crate::server::transfer::{Pieces, answered};
use crate::wire::split::{Apart, Path, Splitter};
use crate::wire::{self, answers};
use bytes::Bytes;
use http_body_util::BodyExt;
use prost::Message;
use proto::tensorflow as pb;
use status::{Error, Result, cancelled};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tensor::Tensor;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service as Handler};
use tonic::server::NamedService;

const RUN_STEP: &str = "/tensorflow.MasterService/RunStep";
const RUN_CALLABLE: &str = "/tensorflow.MasterService/RunCallable";

/// An error in the body of an answer comes alone.
const NO_TENSORS: &[Tensor] = &[];

/// The master service with its bulk methods in front.
#[derive(Clone)]
pub(crate) struct WithBulk<S> {
    pub inner: S,
    pub service: Arc<Service>,
}

impl<S: NamedService> NamedService for WithBulk<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Handler<http::Request<Body>> for WithBulk<S>
where
    S: Handler<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.service.clone();
        match request.uri().path() {
            RUN_STEP => Box::pin(async move { Ok(answer(run_step(&service, request.into_body()).await)) }),
            RUN_CALLABLE => Box::pin(async move { Ok(answer(run_callable(&service, request.into_body()).await)) }),
            _ => Box::pin(self.inner.call(request)),
        }
    }
}

async fn run_step(service: &Service, body: Body) -> Result<Vec<Bytes>> {
    let (request, content) = receive::<pb::RunStepRequest>(body, wire::RUN_STEP_FEEDS).await?.open();
    let in_body = request.store_errors_in_response_body;
    match service.step(request, content).await {
        Err(error) if in_body => answers::answer(NO_TENSORS, &wire::run_step_error(error)),
        result => result,
    }
}

async fn run_callable(service: &Service, body: Body) -> Result<Vec<Bytes>> {
    let (request, content) = receive::<pb::RunCallableRequest>(body, wire::RUN_CALLABLE_FEEDS).await?.open();
    service.callable(request, content).await
}

/// The one message of a request.
async fn receive<M: Message + Default>(mut body: Body, path: Path) -> Result<Apart<M>> {
    let mut splitter = Splitter::new(path);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|gone| cancelled!("The client stopped sending its request: {gone}"))?;
        if let Ok(data) = frame.into_data() {
            splitter.push(&data)?;
        }
    }
    splitter.finish()
}

fn answer(result: Result<Vec<Bytes>>) -> http::Response<Body> {
    match result {
        Ok(pieces) => answered(Pieces::body(pieces)),
        Err(error) => refuse(error),
    }
}

fn refuse(error: Error) -> http::Response<Body> {
    wire::status(error).into_http()
}

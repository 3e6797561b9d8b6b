//! Steps and callables without copies of what is fed and fetched.

use crate::server::before::{Answering, Bulk};
use crate::server::master::Service;
use crate::server::transfer::{Pieces, answered};
use crate::wire::split::{Apart, Form, Splitter};
use crate::wire::{self, answers};
use bytes::Bytes;
use http_body_util::BodyExt;
use prost::Message;
use proto::tensorflow as pb;
use status::{Error, Result, cancelled};
use std::sync::Arc;
use tensor::Tensor;
use tonic::body::Body;

pub(crate) const RUN_STEP: &str = "/tensorflow.MasterService/RunStep";
pub(crate) const RUN_CALLABLE: &str = "/tensorflow.MasterService/RunCallable";

/// An error in the body of an answer comes alone.
pub(super) const NO_TENSORS: &[Tensor] = &[];

/// Steps and callables of the master service.
#[derive(Clone)]
pub(crate) struct Steps(pub Arc<Service>);

impl Bulk for Steps {
    const PATHS: &'static [&'static str] = &[RUN_STEP, RUN_CALLABLE];

    fn answer(&self, request: http::Request<Body>) -> Answering {
        let service = self.0.clone();
        Box::pin(async move {
            let is_step = request.uri().path() == RUN_STEP;
            let body = request.into_body();
            Ok(answer(if is_step { run_step(&service, body).await } else { run_callable(&service, body).await }))
        })
    }
}

async fn run_step(service: &Service, body: Body) -> Result<Vec<Bytes>> {
    let (request, content) = receive::<pb::RunStepRequest>(body, &wire::RUN_STEP).await?.open();
    let in_body = request.store_errors_in_response_body;
    match service.step(request, content).await {
        Err(error) if in_body => answers::answer(NO_TENSORS, &wire::run_step_error(error)),
        result => result,
    }
}

async fn run_callable(service: &Service, body: Body) -> Result<Vec<Bytes>> {
    let (request, content) = receive::<pb::RunCallableRequest>(body, &wire::RUN_CALLABLE).await?.open();
    service.callable(request, content).await
}

/// The one message of a request.
pub(super) async fn receive<M: Message + Default>(mut body: Body, form: &'static Form) -> Result<Apart<M>> {
    let mut splitter = Splitter::new(form);
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

//! RunGraph without copies of what it takes and gives, and ends of steps that come with it.

use crate::server::bulk::{NO_TENSORS, receive};
use crate::server::recent::Recent;
use crate::server::transfer::{Pieces, answered};
use crate::wire::{self, answers};
use bytes::Bytes;
use cluster::WorkerClient;
use http::HeaderValue;
use proto::tensorflow as pb;
use status::{Error, Result};
use tonic::body::Body;

/// The method's path.
pub(crate) const RUN_GRAPH: &str = "/tensorflow.WorkerService/RunGraph";
/// In a request: numbers of steps that are over, with commas between them.
pub(crate) const ENDED: &str = "flowgrid-ended-steps";
/// In an answer: this task takes them.
pub(crate) const TAKES_ENDED: &str = "flowgrid-takes-ended-steps";

/// Runs a graph.
pub(super) async fn answer(
    worker: &dyn WorkerClient,
    recent: &Recent,
    request: http::Request<Body>,
) -> Result<http::Response<Body>> {
    let (head, body) = request.into_parts();
    if let Some(steps) = head.headers.get(ENDED) {
        forget(worker, steps).await;
    }
    let (request, content) = receive::<pb::RunGraphRequest>(body, &wire::RUN_GRAPH).await?.open();
    let in_body = request.store_errors_in_response_body;
    let call = async {
        recent.check(request.request_id, "RunGraph (Worker)", || wire::describe_run_graph(&request))?;
        wire::run_graph_answer(worker.run_graph(wire::run_graph(request, content)?).await?)
    };
    let mut answer = match call.await {
        Ok(pieces) => answered(Pieces::body(pieces)),
        Err(error) if in_body => failed(error)?,
        Err(error) => return Err(error),
    };
    answer.headers_mut().insert(TAKES_ENDED, HeaderValue::from_static("1"));
    Ok(answer)
}

/// Forgets the steps that a header names.
pub(super) async fn forget(worker: &dyn WorkerClient, steps: &HeaderValue) {
    for step in steps.to_str().unwrap_or_default().split(',').filter_map(|step| step.parse().ok()) {
        if let Err(error) = worker.cleanup_graph(step).await {
            tracing::debug!("step {step} is not forgotten: {error}");
        }
    }
}

/// An error inside a good answer, since gRPC's own errors must be short.
fn failed(error: Error) -> Result<http::Response<Body>> {
    let derived = error.derived;
    let message: Vec<Bytes> = answers::answer(NO_TENSORS, &wire::run_graph_error(error))?;
    let mut answer = answered(Pieces::body(message));
    if derived {
        answer.headers_mut().insert(wire::DERIVED_HEADER, HeaderValue::from_static("1"));
    }
    Ok(answer)
}

//! RunGraph: feeds and fetches are not copied, and the ends of earlier steps arrive in a header.

use crate::server::body::{self, NO_TENSORS, Pieces};
use crate::wire::extensions::{self, ACCEPTS_ENDED_STEPS, DERIVED};
use crate::wire::{self, tensor_list};
use cluster::WorkerClient;
use http::HeaderValue;
use proto::tensorflow as pb;
use status::{Error, Result};
use tonic::body::Body;

/// Runs a graph.
pub(super) async fn run_graph(worker: &dyn WorkerClient, request: http::Request<Body>) -> Result<http::Response<Body>> {
    let (head, body) = request.into_parts();
    let ended = extensions::ended_steps(&head.headers);
    let (request, content) = body::read::<pb::RunGraphRequest>(body, &wire::RUN_GRAPH).await?.open();
    let error_in_body = request.store_errors_in_response_body;
    let call = async {
        let answer = worker.run_graph_after(&ended, wire::run_graph(request, content)?).await?;
        wire::run_graph_answer(answer?)
    };
    let mut answer = match call.await {
        Ok(pieces) => body::answer(Pieces::body(pieces)),
        Err(error) if error_in_body => failed(error)?,
        Err(error) => return Err(error),
    };
    answer.headers_mut().insert(ACCEPTS_ENDED_STEPS, HeaderValue::from_static("1"));
    Ok(answer)
}

/// An answer whose body contains an error: the errors of gRPC itself are headers, which must be short.
fn failed(error: Error) -> Result<http::Response<Body>> {
    let derived = error.derived;
    let message = tensor_list::encode_answer(NO_TENSORS, &wire::run_graph_error(error))?;
    let mut answer = body::answer(Pieces::body(message));
    if derived {
        answer.headers_mut().insert(DERIVED, HeaderValue::from_static("1"));
    }
    Ok(answer)
}

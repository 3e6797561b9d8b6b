//! Paths of the methods whose messages hold tensors, and what only tasks of Flowgrid understand: headers and one method.
//! Other tasks ignore the headers; the method is called only after a task has said that it accepts it.

use http::HeaderValue;

pub(crate) const RUN_STEP: &str = "/tensorflow.MasterService/RunStep";
pub(crate) const RUN_CALLABLE: &str = "/tensorflow.MasterService/RunCallable";
pub(crate) const RUN_GRAPH: &str = "/tensorflow.WorkerService/RunGraph";
pub(crate) const RECV_TENSOR: &str = "/tensorflow.WorkerService/RecvTensor";

/// Several RecvTensor requests in one call.
pub(crate) const RECV_TENSORS: &str = "/tensorflow.WorkerService/RecvTensors";
/// In an answer to RecvTensor: this task accepts `RECV_TENSORS`.
pub(crate) const ACCEPTS_BATCHES: &str = "flowgrid-takes-several";
/// In a request for a tensor: the caller understands raw content. In the answer: the size of the raw content that
/// follows the message.
pub(crate) const RAW_CONTENT: &str = "flowgrid-raw-content";
/// In a request: steps that have ended, as decimal numbers with commas between them.
pub(crate) const ENDED_STEPS: &str = "flowgrid-ended-steps";
/// In an answer to RunGraph: this task accepts `ENDED_STEPS`.
pub(crate) const ACCEPTS_ENDED_STEPS: &str = "flowgrid-takes-ended-steps";
/// In an answer whose body contains an error: the error is only a consequence of another one.
pub(crate) const DERIVED: &str = "flowgrid-derived";

/// Steps as a header; `None` if there are none.
pub(crate) fn ended_steps_header(steps: &[u64]) -> Option<HeaderValue> {
    let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
    let mut header = HeaderValue::from_str(&steps.join(",")).ok().filter(|header| !header.is_empty())?;
    // Its value is never repeated, so the connection must not store it in place of other headers.
    header.set_sensitive(true);
    Some(header)
}

/// The steps in a header.
pub(crate) fn ended_steps(headers: &http::HeaderMap) -> Vec<u64> {
    let steps = headers.get(ENDED_STEPS).and_then(|steps| steps.to_str().ok()).unwrap_or_default();
    steps.split(',').filter_map(|step| step.parse().ok()).collect()
}

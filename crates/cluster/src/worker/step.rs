//! One run of a registered graph.

use crate::api::{RunGraph, RunGraphAnswer, StepStats};
use crate::worker::recv::{Step, StepRendezvous};
use crate::worker::session::WorkerSession;
use crate::worker::{Worker, session::Registered};
use exec::{LocalRendezvous, RunOptions, Stats};
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::Shared;
use op::{Cancel, Rendezvous, Resources, StepEnv};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Result, cancelled, internal, invalid};
use std::sync::Arc;
use tensor::Tensor;

/// The end of a run, for everybody who waits for it.
type End = Shared<std::pin::Pin<Box<dyn std::future::Future<Output = Result<()>> + Send>>>;

/// Runs of which some calls are still to come.
#[derive(Default)]
pub(crate) struct Partials {
    runs: Mutex<FxHashMap<u64, (End, Arc<Cancel>)>>,
}

pub(crate) async fn run_graph(worker: Arc<Worker>, request: RunGraph) -> Result<RunGraphAnswer> {
    let session = worker.session(&request.session)?;
    let step = worker.step(request.step_id)?;
    for (key, tensor) in request.send.iter() {
        step.tensors.send(key, tensor.clone(), false)?;
    }
    if request.partial {
        return run_partial(&worker, &session, step, request).await;
    }
    let registered = session.graph(&request.graph)?;
    let stats = request.trace.then(|| Arc::new(Stats::new()));
    let cancel = Arc::new(Cancel::default());
    // Dropped when the caller goes away: then nobody wants the step any more.
    let guard = CancelOnDrop(Some(cancel.clone()));
    start(&worker, &session, &registered, &request, step.clone(), cancel, stats.clone()).await?;
    guard.disarm();
    worker.check_keeping()?;
    worker.counters.step();
    let mut answer = RunGraphAnswer::default();
    for key in request.recv {
        let tensor = take(&step.tensors, &key)?;
        answer.recv.push((key, tensor));
    }
    if let Some(stats) = stats {
        answer.stats = by_device(stats.take());
    }
    Ok(answer)
}

/// What ran when, device by device.
fn by_device(nodes: Vec<exec::NodeStats>) -> StepStats {
    let mut devices = StepStats::new();
    for node in nodes {
        match devices.iter_mut().find(|(device, _)| **device == *node.device) {
            Some((_, nodes)) => nodes.push(node),
            None => devices.push((node.device.to_string(), vec![node])),
        }
    }
    devices
}

/// Cancels a step whose caller went away.
struct CancelOnDrop(Option<Arc<Cancel>>);

impl CancelOnDrop {
    /// The caller got its answer.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.cancel(cancelled!("Step was cancelled").derived());
        }
    }
}

/// Starts the executor; the future ends with it.
fn start(
    worker: &Arc<Worker>,
    session: &Arc<WorkerSession>,
    registered: &Arc<Registered>,
    request: &RunGraph,
    step: Step,
    cancel: Arc<Cancel>,
    stats: Option<Arc<Stats>>,
) -> std::pin::Pin<Box<dyn std::future::Future<Output = Result<()>> + Send>> {
    let (cluster, own) = match &session.cluster {
        Some((cluster, task)) => (cluster.clone(), task.clone()),
        None => (worker.cluster(), worker.task.clone()),
    };
    let rendezvous = StepRendezvous {
        local: step.tensors.clone(),
        buffers: step.buffers.clone(),
        worker: worker.clone(),
        cluster,
        step_id: request.step_id,
        own,
    };
    // A step that is cancelled from outside must not leave its Recvs waiting.
    let _ = cancel.register(move |error| step.abort(error.clone()));
    let threads = worker.threads.clone();
    let env = Arc::new(StepEnv {
        step_id: request.step_id,
        pool: worker.pool.clone(),
        step_resources: Resources::new("__per_step"),
        rendezvous: Arc::new(rendezvous),
        cancel,
        spawn: Arc::new(move |work| threads.spawn(work)),
        member: session.member.clone(),
        stats,
    });
    let (answer, wait) = oneshot::channel();
    let keep = registered.clone();
    let finish = Box::new(move |result: Result<_>| {
        let _keep = keep;
        let _ = answer.send(result.map(|_: Vec<_>| ()));
    });
    exec::run(registered.program.clone(), RunOptions { env, args: Vec::new() }, finish);
    Box::pin(async move { wait.await.unwrap_or_else(|_| Err(internal!("the executor ended without an answer"))) })
}

/// A fetched tensor; the run is over, so it is there or was dead.
fn take(local: &LocalRendezvous, key: &str) -> Result<Tensor> {
    let (answer, mut wait) = oneshot::channel();
    local.recv(key, Box::new(move |received| drop(answer.send(received))));
    match wait.try_recv() {
        Ok(Some(Ok((tensor, false)))) => Ok(tensor),
        Ok(Some(Err(error))) => Err(error),
        _ => Err(invalid!("The tensor returned for {} was not valid.", key.split(';').nth(3).unwrap_or(key))),
    }
}

/// One of several calls for a step: the first starts it, the last waits for its end.
async fn run_partial(
    worker: &Arc<Worker>,
    session: &Arc<WorkerSession>,
    step: Step,
    request: RunGraph,
) -> Result<RunGraphAnswer> {
    let known = session.partials.runs.lock().get(&request.step_id).cloned();
    let (end, cancel) = match known {
        Some(known) => known,
        None => {
            let registered = session.graph(&request.graph)?;
            let cancel = Arc::new(Cancel::default());
            let end = start(worker, session, &registered, &request, step.clone(), cancel.clone(), None).shared();
            session.partials.runs.lock().insert(request.step_id, (end.clone(), cancel.clone()));
            (end, cancel)
        }
    };
    let guard = CancelOnDrop(Some(cancel));
    let mut answer = RunGraphAnswer::default();
    for key in &request.recv {
        let (send, wait) = oneshot::channel();
        step.tensors.recv(key, Box::new(move |received| drop(send.send(received))));
        match wait.await.unwrap_or_else(|_| Err(internal!("the step ended"))) {
            Ok((tensor, false)) => answer.recv.push((key.clone(), tensor)),
            Ok((_, true)) => return Err(invalid!("The tensor returned for {key} was not valid.")),
            Err(error) => return Err(error),
        }
    }
    if request.last_partial {
        let result = end.await;
        session.partials.runs.lock().remove(&request.step_id);
        result?;
        worker.counters.step();
    }
    guard.disarm();
    Ok(answer)
}

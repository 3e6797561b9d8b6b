//! Runs a registered graph.

use crate::api::{RunGraph, RunGraphAnswer, StepStats};
use crate::worker::Worker;
use crate::worker::rendezvous::StepRendezvous;
use crate::worker::session::{Registered, WorkerSession};
use crate::worker::steps::Step;
use exec::{LocalRendezvous, RunOptions, Stats};
use futures_channel::oneshot;
use graph::RendezvousKey;
use op::{Calls, Cancel, Rendezvous, Resources, StepEnv};
use status::{Result, cancelled, internal, invalid};
use std::sync::Arc;
use tensor::Tensor;

pub(crate) async fn run_graph(worker: Arc<Worker>, request: RunGraph) -> Result<RunGraphAnswer> {
    let session = worker.session(&request.session)?;
    if !request.partial && session.graph(&request.graph).is_ok_and(|graph| graph.is_collective) {
        worker.allow_again(request.step_id);
    }
    let step = worker.step(request.step_id)?;
    for (key, tensor) in request.send.iter() {
        step.tensors.send(key, tensor.clone(), false)?;
    }
    if request.partial {
        return run_partial(&worker, &session, step, request).await;
    }
    let stats = request.trace.then(|| Arc::new(Stats::new()));
    let run = Run {
        worker: &worker,
        session: &session,
        registered: session.graph(&request.graph)?,
        step_id: request.step_id,
        step: step.clone(),
        cancel: Arc::default(),
        stats: stats.clone(),
    };
    // Dropped when the caller drops the call: then the result is not needed.
    let guard = CancelOnDrop(Some(run.cancel.clone()));
    let (result, end) = oneshot::channel();
    start(run, result);
    flatten(end.await)?;
    guard.disarm();
    worker.check_observers()?;
    worker.counters.step();
    let mut answer = RunGraphAnswer::default();
    for key in request.recv {
        let tensor = take(&step.tensors, &key)?;
        session.count_fetched(&worker, &key, &tensor);
        answer.recv.push((key, tensor));
    }
    if let Some(stats) = stats {
        answer.stats = by_device(stats.take());
    }
    Ok(answer)
}

/// The statistics of nodes by device.
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

/// Cancels a step when its caller drops the call.
struct CancelOnDrop(Option<Arc<Cancel>>);

impl CancelOnDrop {
    /// The caller gets its answer.
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

/// What a run needs to start.
struct Run<'a> {
    worker: &'a Arc<Worker>,
    session: &'a Arc<WorkerSession>,
    registered: Arc<Registered>,
    step_id: u64,
    step: Step,
    cancel: Arc<Cancel>,
    stats: Option<Arc<Stats>>,
}

/// Starts the executor, which sends its result to `result_sender`.
fn start(run: Run<'_>, result_sender: oneshot::Sender<Result<()>>) {
    let Run { worker, session, registered, step_id, step, cancel, stats } = run;
    let (cluster, own) = match &session.cluster {
        Some((cluster, task)) => (cluster.clone(), task.clone()),
        None => (worker.cluster(), worker.task.clone()),
    };
    let rendezvous = StepRendezvous {
        local: step.tensors.clone(),
        buffers: step.buffers.clone(),
        worker: worker.clone(),
        cluster,
        step_id,
        own,
    };
    // A step that is cancelled from outside must not leave Recvs waiting.
    let _ = cancel.register(move |error| step.abort(error.clone()));
    let threads = worker.threads.clone();
    let env = Arc::new(StepEnv {
        step_id,
        pool: worker.pool.clone(),
        step_resources: Arc::new(Resources::new("__per_step")),
        rendezvous: Arc::new(rendezvous),
        cancel,
        spawn: Arc::new(move |work| threads.spawn(work)),
        extensions: registered.extensions.clone(),
        stats,
        calls: Calls::default(),
    });
    let program = registered.program.clone();
    let finish = Box::new(move |result: Result<_>| {
        let _keep = registered;
        let _ = result_sender.send(result.map(|_: Vec<_>| ()));
    });
    exec::run(program, RunOptions { env, args: Vec::new() }, finish);
}

fn flatten(end: std::result::Result<Result<()>, oneshot::Canceled>) -> Result<()> {
    end.unwrap_or_else(|_| Err(internal!("the executor stopped without a result")))
}

/// A fetched tensor. The run has ended, so it is there, or it is dead.
fn take(local: &LocalRendezvous, key: &str) -> Result<Tensor> {
    let (answer, mut wait) = oneshot::channel();
    local.recv(key, Box::new(move |received| drop(answer.send(received))));
    match wait.try_recv() {
        Ok(Some(Ok((tensor, false)))) => Ok(tensor),
        Ok(Some(Err(error))) => Err(error),
        _ => {
            let name = RendezvousKey::parse(key).map_or(key, |key| key.tensor_name);
            Err(invalid!("The tensor returned for {name} was not valid."))
        }
    }
}

/// One of the calls of a partial run: the first one starts it, the last one waits for its end.
async fn run_partial(
    worker: &Arc<Worker>,
    session: &Arc<WorkerSession>,
    step: Step,
    request: RunGraph,
) -> Result<RunGraphAnswer> {
    let registered = session.graph(&request.graph)?;
    let (run, first) = worker.steps.partial(request.step_id, &request.session)?;
    if let Some(result) = first {
        let (step_id, cancel) = (request.step_id, run.cancel.clone());
        start(Run { worker, session, registered, step_id, step: step.clone(), cancel, stats: None }, result);
    }
    let guard = CancelOnDrop(Some(run.cancel));
    let mut answer = RunGraphAnswer::default();
    for key in &request.recv {
        let (send, wait) = oneshot::channel();
        step.tensors.recv(key, Box::new(move |received| drop(send.send(received))));
        match wait.await.unwrap_or_else(|_| Err(internal!("the step ended"))) {
            Ok((tensor, false)) => {
                session.count_fetched(worker, key, &tensor);
                answer.recv.push((key.clone(), tensor));
            }
            Ok((_, true)) => return Err(invalid!("The tensor returned for {key} was not valid.")),
            Err(error) => return Err(error),
        }
    }
    if request.last_partial {
        flatten(run.end.await)?;
        worker.counters.step();
    }
    worker.check_observers()?;
    guard.disarm();
    Ok(answer)
}

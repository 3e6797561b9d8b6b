//! One step: run on all tasks that take part, cancelled on all when one fails.

use crate::RunOptions;
use crate::api::{RunGraph, RunGraphAnswer, StepStats, TransferStats, from_task};
use crate::ids;
use crate::master::noting::Noting;
use crate::master::plans::{Exchanged, Plan, PlanPart};
use crate::master::session::MasterSession;
use futures_channel::oneshot;
use futures_util::future::{Either, join_all, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use graph::GraphDef;
use op::{Cancel, CancelToken};
use plan::Signature;
use status::{Code, Error, Result, internal};
use std::sync::Arc;
use tensor::Tensor;

/// A step as a client asks for it.
#[derive(Clone, Debug, Default)]
pub struct RunStep {
    /// Values by tensor name.
    pub feeds: Vec<(String, Tensor)>,
    /// Tensors wanted.
    pub fetches: Vec<String>,
    /// Nodes to run.
    pub targets: Vec<String>,
    /// Its options.
    pub options: RunOptions,
    /// A step announced before, of which this is one piece.
    pub partial: Option<String>,
}

/// What a step gave.
#[derive(Debug, Default)]
pub struct RunStepAnswer {
    /// The tensors wanted, by name.
    pub tensors: Vec<(String, Tensor)>,
    /// What was asked for besides.
    pub metadata: RunMetadata,
}

/// What a client may learn about a step.
#[derive(Clone, Debug, Default)]
pub struct RunMetadata {
    /// When nodes ran.
    pub stats: StepStats,
    /// Which tensors came from other tasks.
    pub transfers: Vec<TransferStats>,
    /// What was run, by task: if the step's options ask for it, or at the first step of its kind in a session that logs
    /// its placement.
    pub partition_graphs: Vec<GraphDef>,
}

impl RunMetadata {
    /// Where nodes ran, a line for each as the master's log has it: `name: (Op): device`. Transfers between tasks are
    /// left out.
    pub fn placement(&self) -> Vec<String> {
        let nodes = self.partition_graphs.iter().flat_map(|graph| &graph.nodes);
        let nodes = nodes.filter(|node| !["_Send", "_Recv"].contains(&&*node.op));
        nodes.map(|node| format!("{}: ({}): {}", node.name, node.op, node.device)).collect()
    }
}

/// So long before the end of its time a step is given up: the answer takes a moment.
const ANSWER_TIME: std::time::Duration = std::time::Duration::from_millis(20);

impl MasterSession {
    pub async fn run_step(self: &Arc<Self>, request: RunStep) -> Result<RunStepAnswer> {
        if request.partial.is_some() {
            return self.run_partial_step(request).await;
        }
        let signature = Signature {
            feeds: request.feeds.iter().map(|(name, _)| name.clone()).collect(),
            fetches: request.fetches.clone(),
            targets: request.targets.clone(),
        };
        let timeout = request.options.timeout;
        let call = async {
            let plan = self.plan(signature).await?;
            self.run_plan(&plan, request.feeds, &request.fetches, &request.options).await
        };
        self.bounded(call, timeout).await
    }

    /// Ends a step early when the session closes or its time is up: its own, or that of every step of the session.
    pub async fn bounded<T>(
        &self,
        call: impl Future<Output = Result<T>>,
        timeout: Option<std::time::Duration>,
    ) -> Result<T> {
        let timeout = timeout.or(self.config.step_timeout);
        let (tell, told) = oneshot::channel::<Error>();
        let token = self.closing.register(move |error| drop(tell.send(error.clone())))?;
        let _registered = Registered(&self.closing, token);
        let call = std::pin::pin!(call);
        match timeout {
            None => end(select(call, told).await),
            Some(time) => {
                // The transport ends the call at the same time, as cancelled: who asked should hear why before that.
                let sleep = self.worker.peers.sleep(time - (time / 20).min(ANSWER_TIME));
                match select(std::pin::pin!(select(call, told)), sleep).await {
                    Either::Left((ended, _)) => end(ended),
                    Either::Right(_) => Err(Error::new(Code::DeadlineExceeded, "Timed out waiting for notification")),
                }
            }
        }
    }

    /// Runs a plan once.
    pub async fn run_plan(
        &self,
        plan: &Arc<Plan>,
        feeds: Vec<(String, Tensor)>,
        fetches: &[String],
        options: &RunOptions,
    ) -> Result<RunStepAnswer> {
        let step_id = ids::step_id();
        let exchanged = plan.exchange(feeds, fetches)?;
        let mut calls = Vec::new();
        for (part, Exchanged { send, recv }) in plan.parts.iter().zip(exchanged) {
            let request = RunGraph {
                session: self.handle.clone(),
                graph: part.graph.clone(),
                step_id,
                send,
                recv,
                trace: options.trace,
                ..RunGraph::default()
            };
            calls.push((part, request));
        }
        // A task alone receives nothing from others.
        let noting = match options.trace && plan.parts.len() > 1 {
            true => Some(Noting::begin(self, plan, step_id).await),
            false => None,
        };
        let cleanup = Cleanup { session: self, plan, step_id };
        let answers = self.run_parts(calls).await;
        drop(cleanup);
        let mut answer = self.collect(plan, answers?, fetches, options)?;
        if let Some(noting) = noting {
            answer.metadata.transfers = noting.end().await;
        }
        Ok(answer)
    }

    /// All parts at once. The first root cause wins, and ends the others by dropping their calls.
    pub async fn run_parts(&self, mut calls: Vec<(&PlanPart, RunGraph)>) -> Result<Vec<RunGraphAnswer>> {
        if calls.len() == 1
            && let Some((part, request)) = calls.pop()
        {
            return Ok(vec![self.run_part(part, request).await?]);
        }
        let mut running: FuturesUnordered<_> =
            calls.into_iter().map(|(part, request)| self.run_part(part, request)).collect();
        let (mut answers, mut derived) = (Vec::new(), None);
        while let Some(answer) = running.next().await {
            match answer {
                Ok(answer) => answers.push(answer),
                Err(error) if error.derived => drop(derived.get_or_insert(error)),
                Err(error) => return Err(error),
            }
        }
        derived.map_or(Ok(answers), Err)
    }

    async fn run_part(&self, part: &PlanPart, request: RunGraph) -> Result<RunGraphAnswer> {
        let answer = part.client.run_graph(request).await;
        if part.is_own {
            return answer;
        }
        let answer = answer.map_err(|error| from_task(error, &part.task))?;
        for (key, tensor) in &answer.recv {
            self.worker.counters.received(key, tensor.byte_size());
        }
        Ok(answer)
    }

    fn collect(
        &self,
        plan: &Plan,
        answers: Vec<RunGraphAnswer>,
        fetches: &[String],
        options: &RunOptions,
    ) -> Result<RunStepAnswer> {
        let mut answer = RunStepAnswer::default();
        let mut received: Vec<(String, Tensor)> = Vec::new();
        for part in answers {
            received.extend(part.recv);
            answer.metadata.stats.extend(part.stats);
        }
        for name in fetches {
            let key = &plan.fetch(name)?.key;
            let place = received.iter().position(|(found, _)| found == key);
            let place = place.ok_or_else(|| internal!("the step gave no value for {name}"))?;
            let tensor = match fetches.iter().filter(|other| *other == name).count() {
                1 => received.swap_remove(place).1,
                _ => received[place].1.clone(),
            };
            answer.tensors.push((name.clone(), tensor));
        }
        let untold = std::mem::take(&mut *plan.untold.lock());
        answer.metadata.partition_graphs = match options.partition_graphs {
            true if untold.is_empty() => self.partition_graphs(plan)?,
            _ => untold,
        };
        Ok(answer)
    }
}

/// Somebody who wants to hear that the session closes, until he is dropped.
struct Registered<'a>(&'a Cancel, CancelToken);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.0.deregister(self.1);
    }
}

fn end<T, A, B>(ended: Either<(Result<T>, A), (std::result::Result<Error, oneshot::Canceled>, B)>) -> Result<T> {
    match ended {
        Either::Left((result, _)) => result,
        Either::Right((Ok(error), _)) => Err(error),
        Either::Right((Err(_), _)) => Err(internal!("the session ended")),
    }
}

/// Tells all tasks that a step is over, however it ended.
pub(crate) struct Cleanup<'a> {
    pub session: &'a MasterSession,
    pub plan: &'a Arc<Plan>,
    pub step_id: u64,
}

impl Drop for Cleanup<'_> {
    fn drop(&mut self) {
        let (plan, step_id) = (self.plan.clone(), self.step_id);
        let work = async move {
            let tell = async |part: &PlanPart| {
                if let Err(error) = part.client.cleanup_graph(step_id).await {
                    tracing::debug!("{} did not clean up step {step_id}: {error}", part.task);
                }
            };
            // All at once: one that is lost must not keep it from the others.
            join_all(plan.parts.iter().map(tell)).await;
        };
        if self.plan.parts.iter().all(|part| part.is_own) {
            // Nothing to wait for: the worker is this task's own.
            let _ = futures_util::FutureExt::now_or_never(work);
        } else {
            self.session.worker.peers.spawn(Box::pin(work));
        }
    }
}

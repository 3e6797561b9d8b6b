//! One step: run on all tasks that take part, and cancelled on all of them when one fails.

use crate::RunOptions;
use crate::api::{RunGraph, RunGraphAnswer, StepStats, TransferStats, from_task};
use crate::master::collective_steps::CollectiveStep;
use crate::master::cost_graph::{CostNode, cost_graph};
use crate::master::plans::{Exchanged, Plan, PlanPart};
use crate::master::session::MasterSession;
use crate::master::transfer_log::TransferLog;
use futures_channel::oneshot;
use futures_util::future::{Either, join_all, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use graph::{GraphDef, builtin_ops};
use op::{Cancel, CancelToken};
use plan::Signature;
use rustc_hash::FxHashMap;
use status::{Code, Error, Result, internal};
use std::hash::Hash;
use std::sync::Arc;
use tensor::Tensor;

/// A step as a client asks for it.
#[derive(Clone, Debug, Default)]
pub struct RunStep {
    /// Values by tensor name.
    pub feeds: Vec<(String, Tensor)>,
    /// Tensors to fetch.
    pub fetches: Vec<String>,
    /// Nodes to run.
    pub targets: Vec<String>,
    /// Its options.
    pub options: RunOptions,
    /// The handle of a partial run, if this is one part of it.
    pub partial: Option<String>,
}

/// The results of a step.
#[derive(Debug, Default)]
pub struct RunStepAnswer {
    /// The fetched tensors, by name.
    pub tensors: Vec<(String, Tensor)>,
    /// What the options of the step ask for besides.
    pub metadata: RunMetadata,
}

/// What a step reports about itself, where its options ask for it.
#[derive(Clone, Debug, Default)]
pub struct RunMetadata {
    /// When nodes ran.
    pub stats: StepStats,
    /// Which tensors came from other tasks.
    pub transfers: Vec<TransferStats>,
    /// The graphs that were run, one for each task: if the step's options ask for them, and for the first step of each
    /// signature in a session that logs its placement.
    pub partition_graphs: Vec<GraphDef>,
    /// What the nodes cost, for steps that the session's configuration picks.
    pub cost_graph: Vec<CostNode>,
}

impl RunMetadata {
    /// The placement of the nodes, in lines as the master logs them: `name: (Op): device`. Transfers between tasks are left
    /// out.
    pub fn placement(&self) -> Vec<String> {
        let nodes = self.partition_graphs.iter().flat_map(|graph| &graph.nodes);
        let nodes = nodes.filter(|node| ![builtin_ops::SEND, builtin_ops::RECV].contains(&&*node.op));
        nodes.map(|node| format!("{}: ({}): {}", node.name, node.op, node.device)).collect()
    }
}

/// A step is given up this long before its time is over, as the answer takes time too.
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

    /// Ends a step early when the session closes or the step's timeout passes: its own, or that of all steps of the session.
    pub async fn bounded<T>(
        &self,
        call: impl Future<Output = Result<T>>,
        timeout: Option<std::time::Duration>,
    ) -> Result<T> {
        let timeout = timeout.or(self.config.step_timeout);
        let (sender, closed) = oneshot::channel::<Error>();
        let token = self.closing.register(move |error| drop(sender.send(error.clone())))?;
        let _registered = Registered(&self.closing, token);
        let call = std::pin::pin!(call);
        match timeout {
            None => end(select(call, closed).await),
            Some(time) => {
                // The client's own timer ends the call at the same time, as cancelled. The reason should reach it before.
                let sleep = self.worker.runtime.sleep(time - (time / 20).min(ANSWER_TIME));
                match select(std::pin::pin!(select(call, closed)), sleep).await {
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
        let step = CollectiveStep::begin(self, plan, options).await?;
        let step_id = step.step_id;
        let wants_costs = plan.wants_cost_graph(self.config.cost_graph_every, self.config.cost_graph_after);
        let exchanged = plan.exchange(feeds, fetches)?;
        let mut calls = Vec::new();
        for (part, Exchanged { send, recv }) in plan.parts.iter().zip(exchanged) {
            let request = RunGraph {
                session: self.handle.clone(),
                graph: part.graph.clone(),
                step_id,
                send,
                recv,
                trace: options.trace || wants_costs,
                ..RunGraph::default()
            };
            calls.push((part, request));
        }
        // A single task receives nothing from others.
        let transfer_log = match options.trace && plan.parts.len() > 1 {
            true => Some(TransferLog::open(self, plan, step_id).await),
            false => None,
        };
        let cleanup = Cleanup { session: self, plan, step_id };
        let answers = self.run_parts(calls).await;
        drop(cleanup);
        let answers = answers?;
        step.succeeded();
        let mut answer = self.collect(plan, answers, fetches, options)?;
        if wants_costs {
            answer.metadata.cost_graph = cost_graph(&self.partition_graphs(plan)?, &answer.metadata.stats);
            if !options.trace {
                answer.metadata.stats.clear();
            }
        }
        if let Some(log) = transfer_log {
            answer.metadata.transfers = log.close().await;
        }
        Ok(answer)
    }

    /// Runs all parts at once. The first error that is not the consequence of another one ends the step, and dropping the
    /// other calls cancels them.
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
        let mut metadata = RunMetadata::default();
        let count = answers.iter().map(|answer| answer.recv.len()).sum();
        let mut received = FxHashMap::with_capacity_and_hasher(count, Default::default());
        for part in answers {
            received.extend(part.recv);
            metadata.stats.extend(part.stats);
        }
        let tensors = fetched(plan, &received, fetches)?;
        let unreported = std::mem::take(&mut *plan.unreported.lock());
        metadata.partition_graphs = match options.partition_graphs {
            true if unreported.is_empty() => self.partition_graphs(plan)?,
            _ => unreported,
        };
        Ok(RunStepAnswer { tensors, metadata })
    }
}

/// The tensors of the fetches, in their order; the same tensor may be fetched twice.
fn fetched(plan: &Plan, received: &FxHashMap<String, Tensor>, fetches: &[String]) -> Result<Vec<(String, Tensor)>> {
    let keys = fetches.iter().map(|name| Ok(&plan.fetch(name)?.key));
    let named = |(tensor, name): (Result<Option<Tensor>>, &String)| {
        Ok((name.clone(), tensor?.ok_or_else(|| internal!("the step gave no value for {name}"))?))
    };
    in_order(received, keys).zip(fetches).map(named).collect()
}

/// The values of these keys, with one lookup for each: a step may have as many fetches as its graph has nodes.
pub(crate) fn in_order<'a, K: Eq + Hash, V: Clone>(
    received: &'a FxHashMap<K, V>,
    keys: impl Iterator<Item = Result<&'a K>>,
) -> impl Iterator<Item = Result<Option<V>>> {
    keys.map(|key| Ok(received.get(key?).cloned()))
}

/// A callback for the end of the session, until this is dropped.
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
            let clean_up = async |part: &PlanPart| {
                if let Err(error) = part.client.cleanup_graph(step_id).await {
                    tracing::debug!("{} did not clean up step {step_id}: {error}", part.task);
                }
            };
            // All at once: a task that does not answer must not delay the others.
            join_all(plan.parts.iter().map(clean_up)).await;
        };
        if self.plan.parts.iter().all(|part| part.is_own) {
            // The worker of this task is called directly, so there is nothing to wait for.
            let _ = futures_util::FutureExt::now_or_never(work);
        } else {
            self.session.worker.runtime.spawn(Box::pin(work));
        }
    }
}

//! Steps that are run piece by piece: some feeds now, some fetches now, the rest later.

use crate::api::RunGraph;
use crate::ids;
use crate::master::plans::{Exchanged, Plan};
use crate::master::session::MasterSession;
use crate::master::step::{Cleanup, RunStep, RunStepAnswer};
use graph::{Edge, FlatGraph, TensorName};
use parking_lot::Mutex;
use plan::Signature;
use rustc_hash::{FxHashMap, FxHashSet};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::Tensor;

/// The steps that have begun and not ended.
#[derive(Default)]
pub(crate) struct PartialRuns {
    runs: Mutex<FxHashMap<String, Partial>>,
    next: std::sync::atomic::AtomicU64,
}

#[derive(Clone)]
struct Partial {
    plan: Arc<Plan>,
    step_id: u64,
    graph: Arc<FlatGraph>,
    /// Tensors still to be fed, and those that were.
    feeds: FxHashSet<String>,
    fed: FxHashSet<String>,
    /// Tensors still to be fetched, and those that were.
    fetches: FxHashSet<String>,
    fetched: FxHashSet<String>,
}

impl MasterSession {
    pub async fn partial_run_setup(
        self: &Arc<Self>,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<String> {
        let graph = self.state.read().graph.clone();
        let signature = Signature { feeds: feeds.clone(), fetches: fetches.clone(), targets };
        let partial = Partial {
            plan: self.bounded(self.plan(signature), None).await?,
            step_id: ids::step_id(),
            graph,
            feeds: feeds.into_iter().collect(),
            fed: FxHashSet::default(),
            fetches: fetches.into_iter().collect(),
            fetched: FxHashSet::default(),
        };
        let handle = self.partials.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string();
        self.partials.runs.lock().insert(handle.clone(), partial);
        Ok(handle)
    }

    pub async fn run_partial_step(&self, request: RunStep) -> Result<RunStepAnswer> {
        let handle = request.partial.clone().unwrap_or_default();
        let (partial, last) = {
            let mut runs = self.partials.runs.lock();
            let partial = runs
                .get_mut(&handle)
                .ok_or_else(|| invalid!("Must run PartialRunSetup before performing partial runs"))?;
            partial.accept(&request)?;
            (partial.clone(), partial.feeds.is_empty() && partial.fetches.is_empty())
        };
        let ending = Ending { session: self, handle: &handle };
        let answer = self.run_piece(&partial, request, last).await?;
        if !last {
            std::mem::forget(ending);
        }
        Ok(answer)
    }

    /// Ends all runs of which pieces are missing: they will not come any more.
    pub fn end_partial_runs(&self) {
        let runs = std::mem::take(&mut *self.partials.runs.lock());
        runs.into_values().for_each(|partial| partial.end(self));
    }

    async fn run_piece(&self, partial: &Partial, request: RunStep, last: bool) -> Result<RunStepAnswer> {
        let plan = &partial.plan;
        let exchanged = plan.exchange(request.feeds, &request.fetches)?;
        let calls = plan.parts.iter().zip(exchanged).map(|(part, Exchanged { send, recv })| {
            let call = RunGraph {
                session: self.handle.clone(),
                graph: part.graph.clone(),
                step_id: partial.step_id,
                send,
                recv,
                partial: true,
                last_partial: last,
                ..RunGraph::default()
            };
            (part, call)
        });
        let answers = self.bounded(self.run_parts(calls.collect()), request.options.timeout).await?;
        let mut received: FxHashMap<String, Tensor> = answers.into_iter().flat_map(|answer| answer.recv).collect();
        let mut answer = RunStepAnswer::default();
        for name in request.fetches {
            if let Some(tensor) = received.remove(&plan.fetch(&name)?.key) {
                answer.tensors.push((name, tensor));
            }
        }
        Ok(answer)
    }
}

/// Ends a run when its last piece is done, and when one fails or nobody waits for it any more.
struct Ending<'a> {
    session: &'a MasterSession,
    handle: &'a str,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let partial = self.session.partials.runs.lock().remove(self.handle);
        if let Some(partial) = partial {
            partial.end(self.session);
        }
    }
}

impl Partial {
    /// Tells all tasks that no more pieces will come.
    fn end(&self, session: &MasterSession) {
        drop(Cleanup { session, plan: &self.plan, step_id: self.step_id });
    }

    /// Checks a piece against what was announced, and notes it.
    fn accept(&mut self, request: &RunStep) -> Result<()> {
        for (name, _) in &request.feeds {
            if self.fed.contains(name) {
                return Err(invalid!("The feed {name} has already been fed."));
            }
            if !self.feeds.contains(name) {
                return Err(invalid!("The feed {name} was not specified in partial_run_setup."));
            }
        }
        for name in &request.fetches {
            if self.fetched.contains(name) {
                return Err(invalid!("The fetch {name} has already been fetched."));
            }
            if !self.fetches.contains(name) {
                return Err(invalid!("The fetch {name} was not specified in partial_run_setup."));
            }
        }
        let now: FxHashSet<&String> = request.feeds.iter().map(|(name, _)| name).collect();
        let missing: FxHashSet<Edge> =
            self.feeds.iter().filter(|name| !now.contains(name)).filter_map(|name| self.edge(name)).collect();
        for name in &request.fetches {
            if let Some(edge) = self.edge(name)
                && self.needs(edge, &missing)
            {
                return Err(invalid!("Fetch {name} can't be computed from the feeds that have been fed so far."));
            }
        }
        for (name, _) in &request.feeds {
            self.feeds.remove(name);
            self.fed.insert(name.clone());
        }
        for name in &request.fetches {
            self.fetches.remove(name);
            self.fetched.insert(name.clone());
        }
        Ok(())
    }

    fn edge(&self, name: &str) -> Option<Edge> {
        let parsed = TensorName::parse(name);
        Some(Edge { node: self.graph.find(parsed.node)?, index: parsed.index? })
    }

    /// Whether a tensor depends on one that has not been fed.
    fn needs(&self, fetch: Edge, missing: &FxHashSet<Edge>) -> bool {
        let fed: FxHashSet<Edge> = self.fed.iter().filter_map(|name| self.edge(name)).collect();
        let mut seen = FxHashSet::default();
        let mut queue = vec![fetch];
        while let Some(edge) = queue.pop() {
            if missing.contains(&edge) {
                return true;
            }
            if fed.contains(&edge) || !seen.insert(edge.node) {
                continue;
            }
            let node = self.graph.node(edge.node);
            queue.extend(node.inputs.iter().copied());
            queue.extend(node.controls.iter().map(|&node| Edge { node, index: 0 }));
        }
        false
    }
}

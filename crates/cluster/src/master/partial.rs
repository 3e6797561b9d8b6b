//! Partial runs: steps that are run in several parts, each with some of the feeds and fetches.

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

/// The partial runs that have begun and not ended, by handle.
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
        let mut end = EndOnDrop { session: self, handle: &handle, is_armed: true };
        let answer = self.run_part_of_step(&partial, request, last).await?;
        end.is_armed = last;
        Ok(answer)
    }

    /// Ends all partial runs that are not complete, as their remaining parts will not come.
    pub fn end_partial_runs(&self) {
        let runs = std::mem::take(&mut *self.partials.runs.lock());
        runs.into_values().for_each(|partial| partial.end(self));
    }

    async fn run_part_of_step(&self, partial: &Partial, request: RunStep, last: bool) -> Result<RunStepAnswer> {
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

/// Ends a partial run after its last part, and when a part fails or its caller goes away.
struct EndOnDrop<'a> {
    session: &'a MasterSession,
    handle: &'a str,
    is_armed: bool,
}

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        if !self.is_armed {
            return;
        }
        let partial = self.session.partials.runs.lock().remove(self.handle);
        if let Some(partial) = partial {
            partial.end(self.session);
        }
    }
}

impl Partial {
    /// Ends the step at all tasks.
    fn end(&self, session: &MasterSession) {
        drop(Cleanup { session, plan: &self.plan, step_id: self.step_id });
    }

    /// Checks a part against what was announced, and records its feeds and fetches.
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
        self.check_dependencies(request)?;
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

    /// An error if a fetch of this part depends on a feed that has not been given yet.
    fn check_dependencies(&self, request: &RunStep) -> Result<()> {
        let given: FxHashSet<&String> = request.feeds.iter().map(|(name, _)| name).collect();
        let missing = self.feeds.iter().filter(|name| !given.contains(name));
        let missing: FxHashSet<Edge> = missing.filter_map(|name| self.edge(name)).collect();
        let fed: FxHashSet<Edge> = self.fed.iter().filter_map(|name| self.edge(name)).collect();
        // Nodes found not to depend on a missing feed need not be visited again for the next fetch.
        let mut visited = FxHashSet::default();
        for name in &request.fetches {
            if let Some(edge) = self.edge(name)
                && self.depends(edge, &missing, &fed, &mut visited)
            {
                return Err(invalid!("Fetch {name} can't be computed from the feeds that have been fed so far."));
            }
        }
        Ok(())
    }

    /// Whether a tensor depends on a missing one, other than through tensors that were fed.
    fn depends(
        &self,
        fetch: Edge,
        missing: &FxHashSet<Edge>,
        fed: &FxHashSet<Edge>,
        visited: &mut FxHashSet<graph::NodeId>,
    ) -> bool {
        let mut queue = vec![fetch];
        while let Some(edge) = queue.pop() {
            if missing.contains(&edge) {
                return true;
            }
            if fed.contains(&edge) || !visited.insert(edge.node) {
                continue;
            }
            let node = self.graph.node(edge.node);
            queue.extend(node.inputs.iter().copied());
            queue.extend(node.controls.iter().map(|&node| Edge { node, index: 0 }));
        }
        false
    }
}

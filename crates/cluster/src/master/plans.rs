//! Plans: for each set of feeds, fetches and targets, the graphs that are registered at the tasks.

use crate::api::{RegisterGraph, WorkerClient, from_task};
use crate::collective::graph_key::graph_key;
use crate::master::session::MasterSession;
use crate::runtime::{Work, run_long};
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{Shared, join_all};
use graph::GraphDef;
use parking_lot::Mutex;
use plan::Signature;
use rustc_hash::FxHashMap;
use status::{Result, internal, unavailable};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use tensor::Tensor;

/// The plans of a session. A plan stays valid when the graph grows, as nodes are only ever added.
#[derive(Default)]
pub(crate) struct Plans {
    by_signature: Mutex<FxHashMap<Signature, Planning>>,
    count: AtomicU64,
}

/// A plan, or the result of the planning that is under way.
#[derive(Clone)]
enum Planning {
    Done(Arc<Plan>),
    Running(Shared<oneshot::Receiver<Result<Arc<Plan>>>>),
}

/// A step whose graphs are registered at all tasks that take part.
pub(crate) struct Plan {
    pub parts: Vec<PlanPart>,
    feeds: FxHashMap<String, Exchange>,
    fetches: FxHashMap<String, Exchange>,
    /// The graphs of a session that logs its placement, until the answer of a step has carried them to the client.
    pub unreported: Mutex<Vec<GraphDef>>,
    signature: Signature,
    number: u64,
    /// The key of a graph with collective operations; otherwise zero.
    pub collective_key: i64,
    /// How many steps have begun, in sessions that build cost graphs.
    steps: AtomicI64,
}

/// A registered graph.
pub(crate) struct PlanPart {
    pub task: String,
    pub client: Arc<dyn WorkerClient>,
    pub graph: String,
    /// Whether it is the master's own task.
    pub is_own: bool,
}

/// How a feed or fetch is sent.
pub(crate) struct Exchange {
    /// The part whose run carries it.
    part: usize,
    /// Its rendezvous key.
    pub key: String,
}

/// The feeds and fetches of one part's run.
#[derive(Clone, Default)]
pub(crate) struct Exchanged {
    pub send: Vec<(String, Tensor)>,
    pub recv: Vec<String>,
}

impl Plan {
    /// Counts a step, and tells whether its cost graph is wanted: TensorFlow's rule, for every `n`th step of a plan after
    /// the first `after`.
    pub fn wants_cost_graph(&self, every: i64, after: i64) -> bool {
        every > 0 && self.steps.fetch_add(1, Ordering::Relaxed).wrapping_add(1).wrapping_sub(after) % every == 0
    }

    /// Divides the feeds and fetches of a step among the parts, in the order of the parts.
    pub fn exchange(&self, feeds: Vec<(String, Tensor)>, fetches: &[String]) -> Result<Vec<Exchanged>> {
        let mut parts = vec![Exchanged::default(); self.parts.len()];
        for (name, tensor) in feeds {
            let feed = self.feeds.get(&name).ok_or_else(|| internal!("{name} is not a feed of this step"))?;
            parts[feed.part].send.push((feed.key.clone(), tensor));
        }
        for name in fetches {
            let Exchange { part, key } = self.fetch(name)?;
            parts[*part].recv.push(key.clone());
        }
        Ok(parts)
    }

    /// How a fetch is sent.
    pub fn fetch(&self, name: &str) -> Result<&Exchange> {
        self.fetches.get(name).ok_or_else(|| internal!("{name} is not a fetch of this step"))
    }
}

/// The feeds or fetches of all parts by name.
fn by_name<'a>(parts: impl Iterator<Item = &'a Vec<(String, String)>>) -> FxHashMap<String, Exchange> {
    let of_part = |(part, names): (usize, &'a Vec<(String, String)>)| {
        names.iter().map(move |(name, key)| (name.clone(), Exchange { part, key: key.clone() }))
    };
    parts.enumerate().flat_map(of_part).collect()
}

impl MasterSession {
    /// The plan of a signature, made at its first use. Planning goes on when the step that began it is given up: a step
    /// that is repeated after it ran out of time finds the plan.
    pub async fn plan(self: &Arc<Self>, mut signature: Signature) -> Result<Arc<Plan>> {
        signature.feeds.sort_unstable();
        signature.fetches.sort_unstable();
        signature.targets.sort_unstable();
        match self.begin_plan(signature) {
            Planning::Done(plan) => Ok(plan),
            Planning::Running(result) => {
                result.await.unwrap_or_else(|_| Err(unavailable!("the task was stopped while it planned the step")))
            }
        }
    }

    fn begin_plan(self: &Arc<Self>, signature: Signature) -> Planning {
        let (sender, receiver) = oneshot::channel();
        let running = Planning::Running(receiver.shared());
        {
            let mut plans = self.plans.by_signature.lock();
            if let Some(known) = plans.get(&signature) {
                return known.clone();
            }
            plans.insert(signature.clone(), running.clone());
        }
        let session = self.clone();
        let mut work: Work = Box::pin(async move {
            let plan = session.make_plan(&signature).await.map(Arc::new);
            {
                let mut plans = session.plans.by_signature.lock();
                match &plan {
                    Ok(plan) => plans.insert(signature, Planning::Done(plan.clone())),
                    Err(_) => plans.remove(&signature),
                };
            }
            let _ = sender.send(plan);
        });
        // Without other tasks there is nothing to wait for, and the first poll makes the plan.
        if work.as_mut().now_or_never().is_none() {
            self.worker.runtime.spawn(work);
        }
        running
    }

    async fn make_plan(&self, signature: &Signature) -> Result<Plan> {
        let number = self.plans.count.fetch_add(1, Ordering::Relaxed);
        let parts = run_long(&*self.worker.runtime, || self.cut(signature, number))?;
        let unreported = match self.config.log_placement {
            true => parts.iter().map(|part| part.graph.clone()).collect(),
            false => Vec::new(),
        };
        let feeds = by_name(parts.iter().map(|part| &part.feeds));
        let fetches = by_name(parts.iter().map(|part| &part.fetches));
        let key = graph_key(parts.iter().map(|part| &part.graph), self.worker.registry.as_ref());
        let registered = join_all(parts.into_iter().map(|part| self.register(part.task, part.graph, key))).await;
        Ok(Plan {
            parts: self.all_or_none(registered).await?,
            feeds,
            fetches,
            unreported: Mutex::new(unreported),
            signature: signature.clone(),
            number,
            collective_key: key,
            steps: AtomicI64::new(0),
        })
    }

    /// The graphs that a plan runs, one for each task. They are made again when a step asks for them: few do, and keeping
    /// them would take as much memory as the graph for every plan.
    pub fn partition_graphs(&self, plan: &Plan) -> Result<Vec<GraphDef>> {
        let parts = run_long(&*self.worker.runtime, || self.cut(&plan.signature, plan.number))?;
        Ok(parts.into_iter().map(|part| part.graph).collect())
    }

    /// Prunes the graph to what a signature needs, and partitions it by task.
    fn cut(&self, signature: &Signature, number: u64) -> Result<Vec<plan::Part>> {
        let (graph, placement) = {
            let state = self.state.read();
            (state.graph.clone(), state.placement.clone())
        };
        let step = plan::prune(&graph, signature, &placement, &self.devices)?;
        plan::partition(step, &self.devices, &graph, &format!("{number}_"))
    }

    async fn register(&self, task: String, graph: GraphDef, collective_graph_key: i64) -> Result<PlanPart> {
        let target = self.target_by_name.get(&task).map(|&place| &self.targets[place]);
        let (known, client) = target.ok_or_else(|| internal!("{task} is not in the session"))?;
        let request = RegisterGraph {
            session: self.handle.clone(),
            graph,
            no_rewriting: self.config.no_rewriting,
            collective_graph_key,
            collective_group_leader: self.config.collective_group_leader.clone(),
        };
        let is_own = *known == self.own;
        let handle = client.register_graph(request).await;
        let graph = handle.map_err(|error| if is_own { error } else { from_task(error, &task) })?;
        Ok(PlanPart { task, client: client.clone(), graph, is_own })
    }

    /// The parts of a plan. If one task refuses its part, the others are deregistered.
    async fn all_or_none(&self, parts: Vec<Result<PlanPart>>) -> Result<Vec<PlanPart>> {
        if parts.iter().any(|part| part.is_err()) {
            let registered = parts.iter().flatten();
            join_all(registered.map(|part| part.client.deregister_graph(self.handle.clone(), part.graph.clone())))
                .await;
        }
        parts.into_iter().collect()
    }
}

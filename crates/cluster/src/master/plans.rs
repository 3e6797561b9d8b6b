//! Plans: for each set of feeds, fetches and targets, the graphs registered at the tasks.

use crate::api::{RegisterGraph, WorkerClient, aside, from_task};
use crate::master::session::MasterSession;
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{Shared, join_all};
use graph::GraphDef;
use parking_lot::Mutex;
use plan::Signature;
use rustc_hash::FxHashMap;
use status::{Result, internal};
use std::sync::Arc;
use tensor::Tensor;

/// The plans made so far; they stay right when the graph grows.
#[derive(Default)]
pub(crate) struct Plans {
    made: Mutex<FxHashMap<Signature, Making>>,
    count: std::sync::atomic::AtomicU64,
}

/// A plan, or somebody who makes it for all who want it.
#[derive(Clone)]
enum Making {
    Made(Arc<Plan>),
    Begun(Shared<oneshot::Receiver<Result<Arc<Plan>>>>),
}

/// A step made ready at all tasks that take part.
pub(crate) struct Plan {
    pub parts: Vec<PlanPart>,
    feeds: FxHashMap<String, Exchange>,
    fetches: FxHashMap<String, Exchange>,
    /// The graphs of a session that logs its placement, until a step has told the client.
    pub untold: Mutex<Vec<GraphDef>>,
    signature: Signature,
    number: u64,
}

/// A registered graph.
pub(crate) struct PlanPart {
    pub task: String,
    pub client: Arc<dyn WorkerClient>,
    pub graph: String,
    /// Whether it is the master's own task.
    pub is_own: bool,
}

/// How a feed or fetch travels.
pub(crate) struct Exchange {
    /// With the run of this part,
    part: usize,
    /// under this key.
    pub key: String,
}

/// What the run of one part takes and gives.
#[derive(Clone, Default)]
pub(crate) struct Exchanged {
    pub send: Vec<(String, Tensor)>,
    pub recv: Vec<String>,
}

impl Plan {
    /// What of a step's feeds and fetches each part exchanges, in the order of the parts.
    pub fn exchange(&self, feeds: Vec<(String, Tensor)>, fetches: &[String]) -> Result<Vec<Exchanged>> {
        let mut parts = vec![Exchanged::default(); self.parts.len()];
        for (name, tensor) in feeds {
            let feed = self.feeds.get(&name).ok_or_else(|| internal!("{name} is no feed of this step"))?;
            parts[feed.part].send.push((feed.key.clone(), tensor));
        }
        for name in fetches {
            let Exchange { part, key } = self.fetch(name)?;
            parts[*part].recv.push(key.clone());
        }
        Ok(parts)
    }

    /// How a fetch travels.
    pub fn fetch(&self, name: &str) -> Result<&Exchange> {
        self.fetches.get(name).ok_or_else(|| internal!("{name} is no fetch of this step"))
    }
}

/// Where each name is, among those of all parts.
fn by_name<'a>(parts: impl Iterator<Item = &'a Vec<(String, String)>>) -> FxHashMap<String, Exchange> {
    let of_part = |(part, names): (usize, &'a Vec<(String, String)>)| {
        names.iter().map(move |(name, key)| (name.clone(), Exchange { part, key: key.clone() }))
    };
    parts.enumerate().flat_map(of_part).collect()
}

impl MasterSession {
    /// The plan of a signature, made at its first use. It is made to its end even if nobody waits for it any more: a step
    /// that is tried again after it ran out of time finds it.
    pub async fn plan(self: &Arc<Self>, mut signature: Signature) -> Result<Arc<Plan>> {
        signature.feeds.sort_unstable();
        signature.fetches.sort_unstable();
        signature.targets.sort_unstable();
        match self.begin_plan(signature) {
            Making::Made(plan) => Ok(plan),
            Making::Begun(wait) => wait.await.unwrap_or_else(|_| Err(internal!("the planning was given up"))),
        }
    }

    fn begin_plan(self: &Arc<Self>, signature: Signature) -> Making {
        let (tell, told) = oneshot::channel();
        let begun = Making::Begun(told.shared());
        {
            let mut made = self.plans.made.lock();
            if let Some(known) = made.get(&signature) {
                return known.clone();
            }
            made.insert(signature.clone(), begun.clone());
        }
        let session = self.clone();
        self.worker.peers.spawn(Box::pin(async move {
            let plan = session.make_plan(&signature).await.map(Arc::new);
            {
                let mut made = session.plans.made.lock();
                match &plan {
                    Ok(plan) => made.insert(signature, Making::Made(plan.clone())),
                    Err(_) => made.remove(&signature),
                };
            }
            let _ = tell.send(plan);
        }));
        begun
    }

    async fn make_plan(&self, signature: &Signature) -> Result<Plan> {
        let number = self.plans.count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let parts = aside(&*self.worker.peers, || self.cut(signature, number))?;
        let untold = match self.config.log_placement {
            true => parts.iter().map(|part| part.graph.clone()).collect(),
            false => Vec::new(),
        };
        let feeds = by_name(parts.iter().map(|part| &part.feeds));
        let fetches = by_name(parts.iter().map(|part| &part.fetches));
        let registered = join_all(parts.into_iter().map(|part| self.register(part.task, part.graph))).await;
        Ok(Plan {
            parts: self.all_or_none(registered).await?,
            feeds,
            fetches,
            untold: Mutex::new(untold),
            signature: signature.clone(),
            number,
        })
    }

    /// The graphs a plan runs, one for each task: made again for the few who ask rather than kept for all.
    pub fn partition_graphs(&self, plan: &Plan) -> Result<Vec<GraphDef>> {
        let parts = aside(&*self.worker.peers, || self.cut(&plan.signature, plan.number))?;
        Ok(parts.into_iter().map(|part| part.graph).collect())
    }

    /// Cuts what a signature needs out of the graph, and apart by task.
    fn cut(&self, signature: &Signature, number: u64) -> Result<Vec<plan::Part>> {
        let (graph, placement) = {
            let state = self.state.read();
            (state.graph.clone(), state.placement.clone())
        };
        let step = plan::prune(&graph, signature, &placement, &self.devices)?;
        plan::partition(step, &self.devices, &graph, &format!("{number}_"))
    }

    async fn register(&self, task: String, graph: GraphDef) -> Result<PlanPart> {
        let target = self.targets.iter().find(|(known, _)| known.to_string() == task);
        let (known, client) = target.ok_or_else(|| internal!("{task} is not in the session"))?;
        let request = RegisterGraph { session: self.handle.clone(), graph, no_rewriting: self.config.no_rewriting };
        let is_own = *known == self.own;
        let handle = client.register_graph(request).await;
        let graph = handle.map_err(|error| if is_own { error } else { from_task(error, &task) })?;
        Ok(PlanPart { task, client: client.clone(), graph, is_own })
    }

    /// The parts of a plan; if one is refused, the others are of no use to their tasks.
    async fn all_or_none(&self, parts: Vec<Result<PlanPart>>) -> Result<Vec<PlanPart>> {
        if parts.iter().any(|part| part.is_err()) {
            let useless = parts.iter().flatten();
            join_all(useless.map(|part| part.client.deregister_graph(self.handle.clone(), part.graph.clone()))).await;
        }
        parts.into_iter().collect()
    }
}

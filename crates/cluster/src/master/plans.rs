//! Plans: for each set of feeds, fetches and targets, the graphs registered at the tasks.

use crate::api::{RegisterGraph, WorkerClient, aside, from_task};
use crate::master::session::MasterSession;
use futures_util::future::join_all;
use graph::GraphDef;
use parking_lot::Mutex;
use plan::Signature;
use rustc_hash::FxHashMap;
use status::{Result, internal};
use std::sync::Arc;

/// The plans made so far; they stay right when the graph grows.
#[derive(Default)]
pub(crate) struct Plans {
    made: Mutex<FxHashMap<Signature, Arc<Plan>>>,
    count: std::sync::atomic::AtomicU64,
}

/// A step made ready at all tasks that take part.
pub(crate) struct Plan {
    pub parts: Vec<PlanPart>,
    /// What the keys of feeds and fetches begin with.
    pub key_prefix: String,
    signature: Signature,
    number: u64,
}

/// A registered graph.
pub(crate) struct PlanPart {
    pub task: String,
    pub client: Arc<dyn WorkerClient>,
    pub graph: String,
    /// Whether feeds and fetches pass here.
    pub is_own: bool,
}

impl Plan {
    /// The key under which a feed or fetch travels.
    pub fn key(&self, tensor: &str) -> String {
        format!("{}{tensor};0:0", self.key_prefix)
    }
}

impl MasterSession {
    /// The plan of a signature, made at its first use.
    pub async fn plan(&self, mut signature: Signature) -> Result<Arc<Plan>> {
        signature.feeds.sort_unstable();
        signature.fetches.sort_unstable();
        signature.targets.sort_unstable();
        if let Some(plan) = self.plans.made.lock().get(&signature) {
            return Ok(plan.clone());
        }
        let plan = Arc::new(self.make_plan(&signature).await?);
        Ok(self.plans.made.lock().entry(signature).or_insert(plan).clone())
    }

    async fn make_plan(&self, signature: &Signature) -> Result<Plan> {
        let number = self.plans.count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let parts = aside(&*self.worker.peers, || self.cut(signature, number))?;
        let registered = join_all(parts.into_iter().map(|part| self.register(part.task, part.graph))).await;
        let name = &self.attributes[0].name;
        Ok(Plan {
            parts: registered.into_iter().collect::<Result<_>>()?,
            key_prefix: format!("{name};{:016x};{name};", self.devices[0].incarnation),
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
        let master = (0, &*self.attributes[0].name, self.devices[0].incarnation);
        let step = plan::prune(&graph, signature, &placement, master)?;
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
}

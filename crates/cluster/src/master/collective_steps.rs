//! The numbers of steps. Those of graphs with collective operations are the same in all programs that take part: the
//! leader of the groups chooses them.

use crate::RunOptions;
use crate::collective::resolve::Resolver;
use crate::ids;
use crate::master::plans::Plan;
use crate::master::session::MasterSession;
use crate::worker::Worker;
use status::{Result, internal};
use std::sync::Arc;
use std::time::Duration;

/// After a step has failed, the leader may not have noticed yet. It is asked this often for another number, with this pause.
const ATTEMPTS: usize = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// A step with its number. Unless it succeeds, it has failed when this is dropped.
pub(super) struct CollectiveStep {
    pub step_id: u64,
    /// None for a graph without collective operations.
    counted: Option<Counted>,
}

/// Who counts the steps of a graph.
struct Counted {
    key: i64,
    worker: Arc<Worker>,
    is_leader: bool,
}

impl CollectiveStep {
    /// Gives a step of a plan its number.
    pub async fn begin(session: &MasterSession, plan: &Plan, options: &RunOptions) -> Result<CollectiveStep> {
        let key = match (plan.collective_key, options.collective_graph_key) {
            (0, _) => return Ok(CollectiveStep { step_id: ids::step_id(), counted: None }),
            (key, 0) => key,
            (_, given) => given,
        };
        let worker = &session.worker;
        let cluster = session.config.cluster.clone().unwrap_or_else(|| worker.cluster());
        let resolver = Resolver::new(worker, cluster, &session.own, &[&session.config.collective_group_leader]);
        let step_id = match &resolver.leader {
            None => worker.collective.steps.choose(key),
            Some(_) => ask(&resolver, key).await?,
        };
        let counted = Counted { key, worker: worker.clone(), is_leader: resolver.leader.is_none() };
        Ok(CollectiveStep { step_id, counted: Some(counted) })
    }

    /// Counts the step.
    pub fn succeeded(mut self) {
        if let Some(Counted { key, worker, .. }) = self.counted.take() {
            worker.collective.steps.succeeded(key, self.step_id);
        }
    }
}

impl Drop for CollectiveStep {
    fn drop(&mut self) {
        if let Some(Counted { key, worker, is_leader }) = &self.counted {
            worker.collective.steps.failed(*key, self.step_id, *is_leader);
        }
    }
}

/// The number of the next step, from the leader if it is not known.
async fn ask(resolver: &Resolver, key: i64) -> Result<u64> {
    let steps = &resolver.worker.collective.steps;
    let Some(leader) = &resolver.leader else { return Ok(steps.choose(key)) };
    if let Some(next) = steps.next(key) {
        return Ok(next);
    }
    let mut attempt = 0;
    loop {
        let answer = resolver.ask(leader, |leader| leader.get_step_sequence(vec![key])).await?;
        let found = answer.into_iter().find(|(found, _)| *found == key);
        let (_, next) = found.ok_or_else(|| internal!("the leader did not say the next step of graph {key}"))?;
        attempt += 1;
        if attempt == ATTEMPTS || !steps.has_failed(key, next) {
            steps.set(key, next);
            return Ok(next);
        }
        resolver.worker.runtime.sleep(PAUSE).await;
    }
}

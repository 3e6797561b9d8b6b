//! Which tensors travelled between the tasks of a traced step: each task notes what it receives, while it is asked to.

use crate::api::{Logging, TransferStats};
use crate::master::plans::Plan;
use crate::master::session::MasterSession;
use futures_util::future::join_all;
use std::sync::Arc;

/// The tasks of a step, which note what they receive as long as this lives. That they do is not worth a failed step.
pub(crate) struct Noting<'a> {
    session: &'a MasterSession,
    plan: &'a Arc<Plan>,
    step_id: u64,
    ended: bool,
}

impl<'a> Noting<'a> {
    /// Asks the tasks to begin.
    pub async fn begin(session: &'a MasterSession, plan: &'a Arc<Plan>, step_id: u64) -> Noting<'a> {
        let noting = Noting { session, plan, step_id, ended: false };
        tell(plan, &Logging { enable: true, ..Logging::default() }).await;
        noting
    }

    /// Asks them to end, and what they noted of the step.
    pub async fn end(mut self) -> Vec<TransferStats> {
        self.ended = true;
        tell(self.plan, &Logging { disable: true, ..Logging::default() }).await;
        tell(self.plan, &Logging { steps: vec![self.step_id], ..Logging::default() }).await
    }
}

impl Drop for Noting<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let plan = self.plan.clone();
            let request = Logging { disable: true, steps: vec![self.step_id], ..Logging::default() };
            let end = async move { drop(tell(&plan, &request).await) };
            self.session.worker.peers.spawn(Box::pin(end));
        }
    }
}

/// Asks all tasks at once; gives what they noted.
async fn tell(plan: &Plan, request: &Logging) -> Vec<TransferStats> {
    let answers = join_all(plan.parts.iter().map(|part| part.client.logging(request.clone()))).await;
    let mut noted = Vec::new();
    for (part, answer) in plan.parts.iter().zip(answers) {
        match answer {
            Ok(steps) => noted.extend(steps.into_iter().flat_map(|(_, transfers)| transfers)),
            Err(error) => tracing::debug!("{} does not tell what it received: {error}", part.task),
        }
    }
    noted
}

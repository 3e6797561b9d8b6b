//! The transfers of a traced step: every task of the step logs the tensors that it receives from others.

use crate::api::{Logging, TransferStats};
use crate::master::plans::Plan;
use crate::master::session::MasterSession;
use futures_util::future::join_all;
use std::sync::Arc;

/// Has the tasks of a step log what they receive until it is dropped. A task that cannot do that does not fail the step.
pub(crate) struct TransferLog<'a> {
    session: &'a MasterSession,
    plan: &'a Arc<Plan>,
    step_id: u64,
    is_closed: bool,
}

impl<'a> TransferLog<'a> {
    /// Asks the tasks to begin.
    pub async fn open(session: &'a MasterSession, plan: &'a Arc<Plan>, step_id: u64) -> TransferLog<'a> {
        let log = TransferLog { session, plan, step_id, is_closed: false };
        request(plan, &Logging { enable: true, ..Logging::default() }).await;
        log
    }

    /// Asks the tasks to end, and for the transfers of the step.
    pub async fn close(mut self) -> Vec<TransferStats> {
        self.is_closed = true;
        request(self.plan, &Logging { disable: true, ..Logging::default() }).await;
        request(self.plan, &Logging { steps: vec![self.step_id], ..Logging::default() }).await
    }
}

impl Drop for TransferLog<'_> {
    fn drop(&mut self) {
        if !self.is_closed {
            let plan = self.plan.clone();
            let logging = Logging { disable: true, steps: vec![self.step_id], ..Logging::default() };
            let work = async move { drop(request(&plan, &logging).await) };
            self.session.worker.runtime.spawn(Box::pin(work));
        }
    }
}

/// Sends a request to all tasks at once; gives the transfers that they return.
async fn request(plan: &Plan, logging: &Logging) -> Vec<TransferStats> {
    let answers = join_all(plan.parts.iter().map(|part| part.client.logging(logging.clone()))).await;
    let mut transfers = Vec::new();
    for (part, answer) in plan.parts.iter().zip(answers) {
        match answer {
            Ok(steps) => transfers.extend(steps.into_iter().flat_map(|(_, transfers)| transfers)),
            Err(error) => tracing::debug!("{} does not log its transfers: {error}", part.task),
        }
    }
    transfers
}

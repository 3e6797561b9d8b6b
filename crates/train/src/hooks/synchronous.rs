//! Starts and ends the part of a worker in synchronous training.

use crate::coordination::{Coordinator, QueueRunner};
use crate::monitored::{RunArgs, RunContext, SessionContext, SessionRunHook};
use crate::sync_replicas::SyncReplicas;
use graph::{Node, Output};
use session::Session;
use status::{Result, failed_precondition};

/// Prepares a session for the steps of a [`SyncReplicas`]. The hook of the chief also applies the mean gradients.
pub struct Synchronous {
    ready: Output,
    local_init: Node,
    chief: Option<Chief>,
    /// The coordinator of the chief's own thread. The thread may wait for gradients that never arrive, so it ends
    /// only when the session is closed; the join of the session's threads before that must not wait for it.
    coordinator: Coordinator,
}

struct Chief {
    init_tokens: Node,
    runner: QueueRunner,
}

impl Synchronous {
    /// The hook of the chief, which puts one token for each replica into the queue at first.
    pub fn chief(sync: &SyncReplicas) -> Result<Synchronous> {
        Synchronous::of_chief(sync, None)
    }

    /// The hook of the chief, which puts this many tokens into the queue at first; see
    /// [`SyncReplicas::init_tokens_op`].
    pub fn chief_with_tokens(sync: &SyncReplicas, tokens: usize) -> Result<Synchronous> {
        Synchronous::of_chief(sync, Some(tokens))
    }

    fn of_chief(sync: &SyncReplicas, tokens: Option<usize>) -> Result<Synchronous> {
        let chief = Chief { init_tokens: sync.init_tokens_op(tokens)?, runner: sync.chief_queue_runner.clone() };
        Ok(Synchronous::new(sync, &sync.chief_init_op, Some(chief)))
    }

    /// The hook of any other worker.
    pub fn worker(sync: &SyncReplicas) -> Synchronous {
        Synchronous::new(sync, &sync.local_step_init_op, None)
    }

    fn new(sync: &SyncReplicas, local_init: &Node, chief: Option<Chief>) -> Synchronous {
        let ready = sync.ready_for_local_init_op.clone();
        Synchronous { ready, local_init: local_init.clone(), chief, coordinator: Coordinator::new() }
    }

    /// Waits for the thread of a session that was closed.
    fn join(&mut self) {
        self.coordinator.request_stop();
        // Its error was reported, or concerns the session that is closed.
        let _ = self.coordinator.join();
        self.coordinator = Coordinator::new();
    }
}

impl SessionRunHook for Synchronous {
    fn after_create_session(&mut self, context: &SessionContext<'_>) -> Result<()> {
        self.join();
        let session = context.session();
        let missing: Vec<String> = session.run(&self.ready)?;
        if !missing.is_empty() {
            return Err(failed_precondition!(
                "Init operations did not make model ready for SyncReplicasOptimizer local_init. Init op: {}, error: \
                 Variables not initialized: {}",
                self.local_init.name(),
                missing.join(", ")
            ));
        }
        session.execute(&self.local_init)?;
        let Some(chief) = &self.chief else { return Ok(()) };
        session.execute(&chief.init_tokens)?;
        chief.runner.start(session, &self.coordinator)
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        self.coordinator.requested_error().map_or(Ok(RunArgs::nothing()), Err)
    }

    fn end(&mut self, _: &Session) -> Result<()> {
        let error = self.coordinator.requested_error();
        self.coordinator.request_stop();
        error.map_or(Ok(()), Err)
    }
}

impl Drop for Synchronous {
    fn drop(&mut self) {
        self.join();
    }
}

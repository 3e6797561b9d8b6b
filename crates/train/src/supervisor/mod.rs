//! The supervisor: a session that is initialized, restored or waited for, and a chief's duties on threads beside it.

mod builder;
mod services;

pub use builder::SupervisorBuilder;

use crate::FileWriter;
use crate::coordination::{Coordinator, JoinOptions, Looper, start_queue_runners};
use crate::monitored::Pieces;
use crate::saver::device_of;
use crate::session_manager::{Initialization, Recovery, SessionManager};
use bytes::Bytes;
use graph::{Graph, Node, Output};
use io::event::{SessionLog, SessionStatus};
use session::{Feeds, Session, SessionConfig};
use status::{Code, Result, failed_precondition, invalid};
use std::sync::Arc;
use std::time::Duration;

/// What initializes a model besides nodes.
type InitFn = Box<dyn Fn(&Session) -> Result<()> + Send + Sync>;

/// Runs training: the chief initializes or restores the model, and saves it, its summaries and its speed on threads
/// of its own; others wait for the chief. The graph stays as it is from the moment the supervisor is made.
pub struct Supervisor {
    graph: Graph,
    is_chief: bool,
    logdir: Option<String>,
    pieces: Pieces,
    init_feeds: Feeds,
    init_fn: Option<InitFn>,
    step: Option<Output>,
    save_summaries: Option<Duration>,
    save_model: Option<Duration>,
    recovery_wait: Duration,
    stop_grace: Duration,
    basename: String,
    events: Option<Arc<FileWriter>>,
    coordinator: Coordinator,
}

impl Supervisor {
    /// A supervisor of a graph; of a chief without a folder, unless said otherwise.
    pub fn build(graph: &Graph) -> SupervisorBuilder {
        SupervisorBuilder::new(graph)
    }

    /// Makes a session on `master` (in this process if empty), calls `work` with it, stops all threads, and ends the
    /// session. The end of the input (`OutOfRange`) is no error; an error of a thread is.
    pub fn managed_session(&self, master: &str, work: impl FnOnce(&Arc<Session>) -> Result<()>) -> Result<()> {
        self.managed_session_with(master, &SessionConfig::default(), None, work)
    }

    /// As `managed_session`, with a configuration, and a limit of the wait for the chief.
    pub fn managed_session_with(
        &self,
        master: &str,
        config: &SessionConfig,
        max_wait: Option<Duration>,
        work: impl FnOnce(&Arc<Session>) -> Result<()>,
    ) -> Result<()> {
        let session = self.prepare_or_wait_for_session(master, config, max_wait)?;
        if let Err(error) = work(&session) {
            self.coordinator.request_stop_with(error);
        }
        let stopped = self.stop();
        // What matters was done, and the master may be gone.
        let _ = session.close();
        stopped
    }

    /// A session that is ready, with the threads beside it.
    pub fn prepare_or_wait_for_session(
        &self,
        master: &str,
        config: &SessionConfig,
        max_wait: Option<Duration>,
    ) -> Result<Arc<Session>> {
        self.coordinator.clear_stop();
        let manager = self.manager();
        let session = Arc::new(match self.is_chief {
            true => self.prepare(&manager, master, config)?,
            false => manager.wait_for_session(master, config, max_wait)?,
        });
        if self.is_chief {
            self.start_standard_services(&session)?;
        }
        start_queue_runners(&session, &self.coordinator)?;
        Ok(session)
    }

    fn manager(&self) -> SessionManager {
        SessionManager::new(&self.graph)
            .ready_op(Some(&self.pieces.ready_op))
            .ready_for_local_init_op(Some(&self.pieces.ready_for_local_init_op))
            .local_init_op(Some(&self.pieces.local_init_op), Feeds::new())
            .recovery_wait(self.recovery_wait)
    }

    fn prepare(&self, manager: &SessionManager, master: &str, config: &SessionConfig) -> Result<Session> {
        let recovery =
            Recovery { saver: Some(&self.pieces.saver), checkpoint_dir: self.logdir.as_deref(), ..Recovery::default() };
        let function = self.init_fn.as_ref();
        let init = Initialization {
            op: Some(&self.pieces.init_op),
            feeds: self.init_feeds.clone(),
            function: function.map(|function| function.as_ref() as &dyn Fn(&Session) -> Result<()>),
        };
        manager.prepare_session(master, config, &recovery, &init)
    }

    /// Whether somebody wants training to end.
    pub fn should_stop(&self) -> bool {
        self.coordinator.should_stop()
    }

    /// Lets training end.
    pub fn request_stop(&self) {
        self.coordinator.request_stop();
    }

    /// What stops the threads beside the training loop.
    pub fn coordinator(&self) -> &Coordinator {
        &self.coordinator
    }

    /// Calls `work` on a thread of its own: every so often, or without a pause.
    pub fn repeat(&self, every: Option<Duration>, work: impl FnMut() -> Result<()> + Send + 'static) -> Result<()> {
        Looper::start(&self.coordinator, "supervisor-loop", every, work)
    }

    /// Writes a summary that the training loop made itself; at the step of the counter if none is given.
    pub fn summary_computed(&self, session: &Session, summary: Bytes, step: Option<i64>) -> Result<()> {
        let Some(events) = &self.events else {
            return Err(failed_precondition!("Writing a summary requires a summary writer."));
        };
        let step = match (step, &self.step) {
            (Some(step), _) => step,
            (None, Some(counter)) => services::read_step(session, counter)?,
            (None, None) => 0,
        };
        events.add_summary(summary, step)
    }

    /// Stops the threads and waits for them; gives the error that was the reason, if there was one.
    pub fn stop(&self) -> Result<()> {
        self.coordinator.request_stop();
        let joined = self.coordinator.join_with(&JoinOptions { grace: self.stop_grace, ..JoinOptions::default() });
        if let (true, Some(events)) = (self.is_chief, &self.events) {
            events.add_session_log(SessionLog { status: SessionStatus::Stop, ..SessionLog::default() }, 0)?;
            events.flush()?;
        }
        match joined {
            Err(error) if error.code == Code::OutOfRange => Ok(()),
            joined => joined,
        }
    }
}

/// Variables of all replicas must be on a task that all of them name: without a device each replica would have its
/// own.
fn check_devices(graph: &Graph) -> Result<()> {
    for def in graph.to_def()?.nodes {
        let is_variable = matches!(def.op.as_str(), "Variable" | "VariableV2" | "VarHandleOp");
        let node = Node::find(&graph.root(), &def.name).filter(|_| is_variable);
        if node.is_some_and(|node| device_of(&node).is_empty()) {
            return Err(invalid!(
                "When using replicas, all Variables must have their device set: {} ({}). Make it in the scope of \
                 replica_device_setter, or say where it is: scope.on(\"/job:ps/task:0\")",
                def.name,
                def.op
            ));
        }
    }
    Ok(())
}

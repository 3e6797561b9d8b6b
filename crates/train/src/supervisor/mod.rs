//! The supervisor: a session that is initialized, restored or waited for, and the services of a chief on threads.

mod builder;
mod last_session;
mod services;

pub use builder::SupervisorBuilder;

use builder::Settings;

use crate::FileWriter;
use crate::coordination::{Coordinator, JoinOptions, Looper, start_queue_runners};
use crate::monitored::ScaffoldNodes;
use crate::recovery::{LastProgress, Origin};
use crate::session_manager::{Initialization, Recovery, SessionManager};
use bytes::Bytes;
use graph::{Graph, Node};
use io::event::{SessionLog, SessionStatus};
use last_session::LastSession;
use services::read_step;
use session::{Feeds, Session, SessionConfig};
use status::{Code, Result, failed_precondition, invalid};
use std::sync::Arc;
use std::time::Duration;

/// Runs training: the chief initializes or restores the model, and saves it, its summaries and its speed on threads
/// of its own; other workers wait for the chief. Building the supervisor finalizes the graph.
///
/// A second session of the same supervisor continues where the last one was: variables that servers still have are
/// kept, and those that a server lost are restored from the newest checkpoint of `logdir`, with a warning. Without a
/// checkpoint the result is a `DataLoss` error, so that training does not start again from zero unnoticed.
pub struct Supervisor {
    graph: Graph,
    scaffold_nodes: ScaffoldNodes,
    settings: Settings,
    events: Option<Arc<FileWriter>>,
    coordinator: Coordinator,
    last_session: LastSession,
}

impl Supervisor {
    /// The settings of a new supervisor of a graph.
    pub fn builder(graph: &Graph) -> SupervisorBuilder {
        SupervisorBuilder::new(graph)
    }

    /// Creates a session on `master` (in this process if empty), calls `work` with it, stops all threads, and closes
    /// the session. The end of the input (`OutOfRange`) is not an error; an error of a thread is.
    pub fn managed_session(&self, master: &str, work: impl FnOnce(&Arc<Session>) -> Result<()>) -> Result<()> {
        self.managed_session_with(master, &SessionConfig::default(), None, work)
    }

    /// As [`Supervisor::managed_session`], with a configuration and a limit of the wait for the chief.
    pub fn managed_session_with(
        &self,
        master: &str,
        config: &SessionConfig,
        max_wait: Option<Duration>,
        work: impl FnOnce(&Arc<Session>) -> Result<()>,
    ) -> Result<()> {
        let session = self.prepare_or_wait_for_session(master, config, max_wait).inspect_err(|_| {
            let _ = self.stop(); // some threads may run already; the first error is the one to report
        })?;
        // Errors after a stop that `work` itself requested are reported too.
        let late = work(&session).or_else(|error| self.coordinator.request_stop_with(error));
        let stopped = self.stop();
        // The work is done, and the master may be unreachable.
        let _ = session.close();
        late.and(stopped)
    }

    /// A session that is ready, with its threads.
    pub fn prepare_or_wait_for_session(
        &self,
        master: &str,
        config: &SessionConfig,
        max_wait: Option<Duration>,
    ) -> Result<Arc<Session>> {
        self.coordinator.clear_stop();
        let session = Arc::new(self.ready_session((master, config), max_wait)?);
        if self.settings.is_chief {
            self.write_graph()?;
        }
        if let (Some(step), false) = (&self.settings.step, master.is_empty()) {
            self.last_session.watch(master, &session, step, &self.coordinator)?;
        }
        if self.settings.standard_services {
            if self.settings.is_chief {
                self.start_standard_services(&session)?;
            }
            start_queue_runners(&session, &self.coordinator)?;
        }
        Ok(session)
    }

    /// A session that is ready. If its step counter is behind that of the last session, a warning is logged.
    fn ready_session(&self, target: (&str, &SessionConfig), max_wait: Option<Duration>) -> Result<Session> {
        // Variables in this process end with their session.
        let before = self.last_session.on(target.0).filter(|_| !target.0.is_empty());
        let last = before.map(|step| LastProgress { counter: self.settings.step.as_ref(), step, setting: "logdir" });
        let (session, origin) = match self.settings.is_chief {
            true => self.prepare(target, last)?,
            false => (self.wait(target, max_wait, last)?, Origin::Servers),
        };
        let found = match self.settings.step.as_ref().map(|step| read_step(&session, step)).transpose() {
            // The user may accept a session in which the step counter has no value.
            Err(error) if matches!(error.code, Code::FailedPrecondition | Code::NotFound) => None,
            found => found?,
        };
        if let (Some(before), Some(found)) = (before, found) {
            warn_if_lost(before, found, origin);
        }
        self.last_session.begin(target.0, found);
        Ok(session)
    }

    fn manager(&self) -> SessionManager {
        SessionManager::new(&self.graph)
            .ready_op(Some(&self.scaffold_nodes.ready_op))
            .ready_for_local_init_op(Some(&self.scaffold_nodes.ready_for_local_init_op))
            .local_init_op(Some(&self.scaffold_nodes.local_init_op), Feeds::new())
            .recovery_wait(self.settings.recovery_wait)
    }

    fn prepare(&self, target: (&str, &SessionConfig), last: Option<LastProgress<'_>>) -> Result<(Session, Origin)> {
        let recovery = Recovery {
            saver: Some(&*self.scaffold_nodes.saver).filter(|saver| !saver.is_empty()),
            checkpoint_dir: self.settings.logdir.as_deref(),
            keep_newer: self.settings.keep_newer,
            ..Recovery::default()
        };
        let function = self.settings.init_fn.as_ref();
        let init = Initialization {
            op: Some(&self.scaffold_nodes.init_op),
            feeds: self.settings.init_feeds.clone(),
            function: function.map(|function| function.as_ref() as &dyn Fn(&Session) -> Result<()>),
        };
        match last {
            Some(last) => self.manager().prepare_again(target, &recovery, &init, last),
            None => Ok((self.manager().prepare_session(target.0, target.1, &recovery, &init)?, Origin::Servers)),
        }
    }

    fn wait(
        &self,
        target: (&str, &SessionConfig),
        limit: Option<Duration>,
        last: Option<LastProgress<'_>>,
    ) -> Result<Session> {
        match last {
            Some(last) => self.manager().wait_again(target, limit, self.settings.logdir.as_deref(), last),
            None => self.manager().wait_for_session(target.0, target.1, limit),
        }
    }

    /// Whether a stop was requested.
    pub fn should_stop(&self) -> bool {
        self.coordinator.should_stop()
    }

    /// Requests a stop.
    pub fn request_stop(&self) {
        self.coordinator.request_stop();
    }

    /// The coordinator of the threads.
    pub fn coordinator(&self) -> &Coordinator {
        &self.coordinator
    }

    /// The event file of a chief that has a `logdir`.
    pub fn summary_writer(&self) -> Option<&Arc<FileWriter>> {
        self.events.as_ref()
    }

    /// Calls `work` repeatedly on a thread of its own: at an interval, or without a pause.
    #[doc(alias = "loop")]
    pub fn repeat(&self, every: Option<Duration>, work: impl FnMut() -> Result<()> + Send + 'static) -> Result<()> {
        Looper::start(&self.coordinator, "supervisor-loop", every, work)
    }

    /// Writes a summary that the training loop computed; at the current step if none is given.
    pub fn summary_computed(&self, session: &Session, summary: Bytes, step: Option<i64>) -> Result<()> {
        let Some(events) = &self.events else {
            return Err(failed_precondition!("Writing a summary requires a summary writer."));
        };
        let step = match (step, &self.settings.step) {
            (Some(step), _) => step,
            (None, Some(counter)) => read_step(session, counter)?,
            (None, None) => 0,
        };
        events.add_summary(summary, step)
    }

    /// Stops the threads and waits for them; gives the error because of which they stopped, if there is one.
    pub fn stop(&self) -> Result<()> {
        self.coordinator.request_stop();
        let joined =
            self.coordinator.join_with(&JoinOptions { grace: self.settings.stop_grace, ..JoinOptions::default() });
        if let (true, Some(events)) = (self.settings.is_chief, &self.events) {
            events.add_session_log(SessionLog { status: SessionStatus::Stop, ..SessionLog::default() }, 0)?;
            events.flush()?;
        }
        match joined {
            Err(error) if error.code == Code::OutOfRange => Ok(()),
            joined => joined,
        }
    }
}

/// Warns about progress that was lost between two sessions.
fn warn_if_lost(before: Option<i64>, found: i64, origin: Origin) {
    match (before.filter(|&before| found < before), origin) {
        (Some(before), Origin::Checkpoint) => {
            tracing::warn!("The global step went back from {before} to {found}: restored from a checkpoint");
        }
        (Some(before), Origin::Servers) => {
            tracing::warn!("The global step went back from {before} to {found}: a chief restored or initialized it");
        }
        (None, Origin::Checkpoint) => {
            tracing::warn!("A task lost its state: restored from a checkpoint at global step {found}");
        }
        (None, Origin::Servers) => {}
    }
}

/// Variables of all replicas must be on a task that all of them name: without a device each replica would have its own
/// variables.
fn check_devices(graph: &Graph) -> Result<()> {
    for def in graph.to_def()?.nodes {
        let is_variable = graph.ops().op_facts(&def.op).variable.is_some();
        let node = Node::find(&graph.root(), &def.name).filter(|_| is_variable);
        if node.is_some_and(|node| node.device().is_empty()) {
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

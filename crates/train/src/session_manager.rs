//! Sessions in which the model is ready: restored from a checkpoint, initialized, or waited for.

use crate::await_ready::{self, WaitOutcome};
use crate::get_global_step;
use checkpoint::saver::Saver;
use checkpoint::step_number;
use graph::{Graph, Node, Output};
use io::CheckpointState;
use io::fs::path::to_str;
use session::{Feeds, Session, SessionConfig};
use status::{Code, Error, Result, failed_precondition, invalid};
use std::path::Path;
use std::time::{Duration, Instant};
use tensor::{DType, Tensor};

/// Creates sessions in which all variables have values.
///
/// A chief *prepares* a session: it restores the newest checkpoint, or initializes the model. Other workers *wait*
/// for the chief.
#[derive(Clone)]
pub struct SessionManager {
    graph: Graph,
    ready: Option<Output>,
    ready_for_local_init: Option<Output>,
    local_init: Option<Node>,
    local_init_feeds: Feeds,
    recovery_wait: Duration,
}

/// The checkpoint from which variables are restored.
#[derive(Clone, Default)]
pub struct Recovery<'a> {
    /// The saver that reads the checkpoint.
    pub saver: Option<&'a Saver>,
    /// The folder whose newest checkpoint is restored.
    pub checkpoint_dir: Option<&'a Path>,
    /// The checkpoint to restore, in place of the newest one of a folder.
    pub checkpoint: Option<&'a Path>,
    /// How long to wait for a checkpoint if there is none.
    pub wait_for_checkpoint: Option<Duration>,
    /// Whether variables that have values are kept if, by the step counter, they are not older than the checkpoint.
    pub keep_newer: bool,
}

/// How variables are initialized.
#[derive(Clone, Default)]
pub struct Initialization<'a> {
    /// The node to run.
    pub op: Option<&'a Node>,
    /// The feeds of that node.
    pub feeds: Feeds,
    /// A function to call afterwards.
    pub function: Option<&'a (dyn Fn(&Session) -> Result<()> + 'a)>,
}

/// The default time between two attempts.
const RECOVERY_WAIT: Duration = Duration::from_secs(30);

impl SessionManager {
    /// Creates sessions of a graph; without further settings they are ready at once.
    pub fn new(graph: &Graph) -> SessionManager {
        SessionManager {
            graph: graph.clone(),
            ready: None,
            ready_for_local_init: None,
            local_init: None,
            local_init_feeds: Feeds::new(),
            recovery_wait: RECOVERY_WAIT,
        }
    }

    /// Sets the output that gives the names of uninitialized variables; a session is ready when there are none.
    pub fn ready_op(mut self, ready: Option<&Output>) -> SessionManager {
        self.ready = ready.cloned();
        self
    }

    /// Sets the output that tells in the same way whether local variables can be initialized.
    pub fn ready_for_local_init_op(mut self, ready: Option<&Output>) -> SessionManager {
        self.ready_for_local_init = ready.cloned();
        self
    }

    /// Sets the node that initializes the variables of this process.
    pub fn local_init_op(mut self, op: Option<&Node>, feeds: Feeds) -> SessionManager {
        (self.local_init, self.local_init_feeds) = (op.cloned(), feeds);
        self
    }

    /// The graph of the sessions.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Sets the time between two attempts; the default is half a minute.
    pub fn recovery_wait(mut self, wait: Duration) -> SessionManager {
        self.recovery_wait = wait;
        self
    }

    /// A session that is ready: restored if there is a checkpoint, else initialized. Values that variables on the
    /// servers have already are overwritten; a warning is logged if that sets the step counter back.
    pub fn prepare_session(
        &self,
        master: &str,
        config: &SessionConfig,
        recovery: &Recovery<'_>,
        init: &Initialization<'_>,
    ) -> Result<Session> {
        let session = Session::with_config(master, &self.graph, config.clone())?;
        let live = self.live_step(&session)?;
        if recovery.keep_newer && self.keeps(&session, live, recovery)? {
            return Ok(session);
        }
        let restored = self.restore(&session, recovery)?;
        if !restored {
            if init.op.is_none() && init.function.is_none() && self.local_init.is_none() {
                return Err(failed_precondition!(
                    "Model is not initialized and no init_op or init_fn or local_init_op was given"
                ));
            }
            if let Some(op) = init.op {
                session.execute_with(op, init.feeds.clone())?;
            }
            if let Some(function) = init.function {
                function(&session)?;
            }
        }
        let name = init.op.map_or("None".to_string(), Node::name);
        if let Some(why) = self.run_local_init(&session)? {
            return Err(failed_precondition!(
                "Init operations did not make model ready for local_init.  Init op: {name}, error: {why}"
            ));
        }
        match self.not_ready(&session)? {
            None => {
                self.warn_if_set_back(&session, live, restored)?;
                Ok(session)
            }
            Some(why) => {
                let local = self.local_init.as_ref().map_or("None".to_string(), Node::name);
                Err(failed_precondition!(
                    "Init operations did not make model ready.  Init op: {name}, local_init_op: {local}, error: {why}"
                ))
            }
        }
    }

    /// A session, and whether restoring a checkpoint made it ready.
    pub fn recover_session(
        &self,
        master: &str,
        config: &SessionConfig,
        recovery: &Recovery<'_>,
    ) -> Result<(Session, bool)> {
        let session = Session::with_config(master, &self.graph, config.clone())?;
        let restored = self.restore(&session, recovery)?;
        let local = self.run_local_init(&session)?;
        let why = match (restored, local) {
            (false, _) => return Ok((session, false)),
            (true, Some(why)) => Some(why),
            (true, None) => self.not_ready(&session)?,
        };
        if let Some(why) = &why {
            tracing::info!("Restoring did not make the model ready: {why}");
        }
        Ok((session, why.is_none()))
    }

    /// A session, once the chief has made it ready; `DeadlineExceeded` if that takes longer than `limit`.
    pub fn wait_for_session(&self, master: &str, config: &SessionConfig, limit: Option<Duration>) -> Result<Session> {
        let (begin, mut was_ready) = (Instant::now(), false);
        loop {
            let session = Session::with_config(master, &self.graph, config.clone())?;
            let why = match self.why_not(&session) {
                Ok(None) => return Ok(session),
                Ok(Some(why)) => why,
                // The task is not up yet, or is being restarted.
                Err(error) if is_lost(&error) => error.message,
                Err(error) => return Err(error),
            };
            drop(session);
            if let Some(limit) = limit.filter(|&limit| begin.elapsed() + self.recovery_wait > limit) {
                let seconds = limit.as_secs_f64();
                let message = format!("Session was not ready after waiting {seconds} secs. {why}");
                return Err(Error::new(Code::DeadlineExceeded, message));
            }
            tracing::info!("Waiting for model to be ready. {why}");
            was_ready = match self.wait_until_ready(master, config) {
                WaitOutcome::TimedOut => false,
                WaitOutcome::Ready if !was_ready => true,
                // All variables have values and the model still is not ready: no server reports what is missing, so
                // ask again later.
                WaitOutcome::Ready | WaitOutcome::Unsupported => {
                    std::thread::sleep(self.recovery_wait);
                    false
                }
            };
        }
    }

    /// Waits until the servers report that the variables have values.
    fn wait_until_ready(&self, master: &str, config: &SessionConfig) -> WaitOutcome {
        // Local variables are initialized afterwards, by this process.
        let first = self.local_init.as_ref().and(self.ready_for_local_init.as_ref());
        let Some(ready) = first.or(self.ready.as_ref()) else { return WaitOutcome::Unsupported };
        await_ready::wait(ready, master, config, self.recovery_wait).unwrap_or_else(|error| {
            tracing::debug!("the servers do not report when the model is ready: {error}");
            WaitOutcome::Unsupported
        })
    }

    /// Initializes local variables; then why a session is not ready, or none if it is.
    pub(crate) fn why_not(&self, session: &Session) -> Result<Option<String>> {
        match self.run_local_init(session)? {
            None => self.not_ready(session),
            why => Ok(why),
        }
    }

    /// Why a session is not ready; none if it is.
    pub fn not_ready(&self, session: &Session) -> Result<Option<String>> {
        missing(self.ready.as_ref(), session)
    }

    /// Initializes local variables; gives the reason if that is not possible yet.
    pub fn run_local_init(&self, session: &Session) -> Result<Option<String>> {
        let Some(op) = &self.local_init else { return Ok(None) };
        let why = missing(self.ready_for_local_init.as_ref(), session)?;
        if why.is_none() {
            session.execute_with(op, self.local_init_feeds.clone())?;
        }
        Ok(why)
    }

    /// The step counter of the servers, if all variables have values.
    fn live_step(&self, session: &Session) -> Result<Option<i64>> {
        let Some(counter) = get_global_step(&self.graph) else { return Ok(None) };
        match session.run::<Tensor>(counter.value()) {
            Ok(step) => match missing(self.ready_for_local_init.as_ref(), session)? {
                None => step_number(&step).map(Some),
                Some(_) => Ok(None),
            },
            Err(error) if matches!(error.code, Code::FailedPrecondition | Code::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the variables of the servers are not older than those of the newest checkpoint. Initializes local
    /// variables.
    fn keeps(&self, session: &Session, live: Option<i64>, recovery: &Recovery<'_>) -> Result<bool> {
        let (Some(live), Some(counter)) = (live, get_global_step(&self.graph)) else { return Ok(false) };
        let found = recovery.find()?;
        let saved = match (&found, recovery.saver) {
            (Some(found), Some(saver)) => saver.read_number(&found.model_checkpoint_path, &counter.name()),
            _ => Ok(i64::MIN),
        };
        // If they cannot be compared, the checkpoint is restored.
        if !saved.is_ok_and(|saved| live >= saved) || self.why_not(session)?.is_some() {
            return Ok(false);
        }
        if let (Some(found), Some(saver), None) = (found, recovery.saver, recovery.checkpoint) {
            saver.recover_last_checkpoints(&found.all_model_checkpoint_paths)?;
        }
        tracing::info!("The variables stay as they are, at global step {live}: no checkpoint is newer");
        Ok(true)
    }

    fn warn_if_set_back(&self, session: &Session, live: Option<i64>, restored: bool) -> Result<()> {
        let (Some(live), Some(found)) = (live, self.live_step(session)?) else { return Ok(()) };
        if found < live {
            let how = if restored { "restored from a checkpoint" } else { "initialized again" };
            tracing::warn!(
                "The global step went back from {live} to {found}: variables that had newer values were {how}; set \
                 keep_newer_state to keep them"
            );
        }
        Ok(())
    }

    /// Restores a checkpoint, if there is one; gives whether there was.
    fn restore(&self, session: &Session, recovery: &Recovery<'_>) -> Result<bool> {
        let Some(saver) = recovery.saver else { return recovery.find().map(|_| false) };
        let begin = Instant::now();
        let state = loop {
            match recovery.find()? {
                Some(state) => break state,
                None if recovery.wait_for_checkpoint.is_some_and(|limit| begin.elapsed() < limit) => {
                    tracing::info!("Waiting for checkpoint to be available.");
                    std::thread::sleep(self.recovery_wait);
                }
                None => return Ok(false),
            }
        };
        saver.restore(session, &state.model_checkpoint_path)?;
        if recovery.checkpoint.is_none() {
            saver.recover_last_checkpoints(&state.all_model_checkpoint_paths)?;
        }
        Ok(true)
    }
}

impl Recovery<'_> {
    /// The checkpoint to restore, if there is one, with the other checkpoints of its folder.
    pub(crate) fn find(&self) -> Result<Option<CheckpointState>> {
        match (self.saver, self.checkpoint, self.checkpoint_dir) {
            (_, Some(_), Some(_)) => {
                Err(invalid!("Can not provide both checkpoint_dir and checkpoint_filename_with_path."))
            }
            (Some(_), Some(path), None) => {
                let model_checkpoint_path = to_str(path)?.to_string();
                Ok(Some(CheckpointState { model_checkpoint_path, ..CheckpointState::default() }))
            }
            (Some(saver), None, Some(folder)) => saver.checkpoint_state(folder),
            _ => Ok(None),
        }
    }
}

/// Whether an error means that a task was lost, so that the same step may succeed in a new session.
///
/// A TensorFlow master that got several errors lists them as lines `CODE: text` and answers with the code of any of
/// them. So a step that failed because of a lost task may be CANCELLED.
pub(crate) fn is_lost(error: &Error) -> bool {
    const LOST: [&str; 4] = ["ABORTED: ", "UNAVAILABLE: ", "Aborted: ", "Unavailable: "];
    match error.code {
        Code::Aborted | Code::Unavailable => true,
        Code::Cancelled => error.message.lines().any(|line| LOST.iter().any(|code| line.starts_with(code))),
        _ => false,
    }
}

/// The uninitialized variables according to `op`; none if all have a value.
fn missing(op: Option<&Output>, session: &Session) -> Result<Option<String>> {
    let Some(op) = op else { return Ok(None) };
    match session.run::<Tensor>(op) {
        Ok(names) if names.elements() == 0 || names.dtype() != DType::STRING => Ok(None),
        Ok(names) => {
            let names: Vec<_> = names.strings()?.iter().map(|name| String::from_utf8_lossy(name)).collect();
            Ok(Some(format!("Variables not initialized: {}", names.join(", "))))
        }
        Err(error) if error.code == Code::FailedPrecondition && error.message.contains("uninitialized") => {
            Ok(Some(error.message))
        }
        Err(error) => Err(error),
    }
}

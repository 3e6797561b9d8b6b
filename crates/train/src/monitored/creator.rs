//! Who makes sessions: the chief, which initializes or restores, and the others, which wait for it.

use super::Scaffold;
use crate::get_global_step;
use crate::session_manager::{Initialization, Recovery, SessionManager};
use graph::Graph;
use session::{Feeds, Session, SessionConfig};
use status::{Code, Error, Result};
use std::sync::Arc;
use std::time::Duration;

/// Makes sessions that are ready.
pub trait SessionCreator: Send {
    /// The graph whose sessions it makes.
    fn graph(&self) -> &Graph;

    /// Makes the first session.
    fn create_session(&self) -> Result<Session>;

    /// Makes a session in place of one that was lost when the step counter was at `step`. What the model had learned
    /// by then must not be forgotten without a word.
    fn recreate_session(&self, step: Option<i64>) -> Result<Session> {
        let _ = step;
        self.create_session()
    }
}

/// Where a session is made, and how.
#[derive(Clone)]
struct Place {
    graph: Graph,
    scaffold: Arc<Scaffold>,
    master: String,
    config: SessionConfig,
    recovery_wait: Option<Duration>,
    checkpoint_dir: Option<String>,
}

impl Place {
    fn new(graph: &Graph) -> Place {
        Place {
            graph: graph.clone(),
            scaffold: Arc::default(),
            master: String::new(),
            config: SessionConfig::default(),
            recovery_wait: None,
            checkpoint_dir: None,
        }
    }

    fn manager(&self) -> Result<SessionManager> {
        let pieces = self.scaffold.finalize_on(&crate::file_systems(&self.config), &self.graph)?;
        let manager = SessionManager::new(&self.graph)
            .ready_op(Some(&pieces.ready_op))
            .ready_for_local_init_op(Some(&pieces.ready_for_local_init_op))
            .local_init_op(Some(&pieces.local_init_op), self.scaffold.local_init_feeds());
        Ok(match self.recovery_wait {
            Some(wait) => manager.recovery_wait(wait),
            None => manager,
        })
    }
}

macro_rules! place {
    ($($creator:ident),*) => {$(
        impl $creator {
            /// Uses these nodes around the model.
            pub fn scaffold(mut self, scaffold: Arc<Scaffold>) -> $creator {
                self.place.scaffold = scaffold;
                self
            }

            /// On this server; in this process if empty.
            pub fn master(mut self, master: &str) -> $creator {
                self.place.master = master.to_string();
                self
            }

            /// With this configuration.
            pub fn config(mut self, config: SessionConfig) -> $creator {
                self.place.config = config;
                self
            }

            /// The folder of the checkpoints from which a lost model is restored.
            pub fn checkpoint_dir(mut self, folder: &str) -> $creator {
                self.place.checkpoint_dir = Some(folder.to_string());
                self
            }

            /// How long is waited between two tries.
            pub fn recovery_wait(mut self, wait: Duration) -> $creator {
                self.place.recovery_wait = Some(wait);
                self
            }
        }
    )*};
}

place!(ChiefSessionCreator, WorkerSessionCreator);

/// Makes sessions of a chief: restored from the newest checkpoint, or initialized.
pub struct ChiefSessionCreator {
    place: Place,
    checkpoint: Option<String>,
    keep_newer: bool,
}

impl ChiefSessionCreator {
    /// Sessions of a graph in this process, without checkpoints.
    pub fn new(graph: &Graph) -> ChiefSessionCreator {
        ChiefSessionCreator { place: Place::new(graph), checkpoint: None, keep_newer: false }
    }

    /// Restores this checkpoint, in place of the newest one of a folder.
    pub fn checkpoint(mut self, path: &str) -> ChiefSessionCreator {
        self.checkpoint = Some(path.to_string());
        self
    }

    /// Whether variables that have values, on servers that lived on or keep a journal, stay as they are if no
    /// checkpoint is newer. Otherwise they are restored or initialized, as by TensorFlow, and the log warns if that
    /// sets the step counter back.
    pub fn keep_newer_state(mut self, keep: bool) -> ChiefSessionCreator {
        self.keep_newer = keep;
        self
    }

    fn prepare(&self, manager: &SessionManager) -> Result<Session> {
        let pieces = self.place.scaffold.pieces()?;
        let recovery = Recovery {
            saver: Some(&pieces.saver),
            checkpoint_dir: self.place.checkpoint_dir.as_deref(),
            checkpoint: self.checkpoint.as_deref(),
            wait_for_checkpoint: None,
            keep_newer: self.keep_newer,
        };
        let function = self.place.scaffold.init_function();
        let init = Initialization {
            op: Some(&pieces.init_op),
            feeds: self.place.scaffold.init_feeds(),
            function: function.map(|function| function.as_ref() as &dyn Fn(&Session) -> Result<()>),
        };
        manager.prepare_session(&self.place.master, &self.place.config, &recovery, &init)
    }

    /// Whether there is a checkpoint to go back to.
    fn has_checkpoint(&self) -> Result<bool> {
        match &self.place.checkpoint_dir {
            Some(folder) => Ok(self.place.scaffold.pieces()?.saver.checkpoint_state(folder)?.is_some()),
            None => Ok(self.checkpoint.is_some()),
        }
    }
}

impl SessionCreator for ChiefSessionCreator {
    fn graph(&self) -> &Graph {
        &self.place.graph
    }

    fn create_session(&self) -> Result<Session> {
        let manager = self.place.manager()?;
        self.prepare(&manager)
    }

    /// State that is still there is used as it is; state that was lost is restored. It is an error if there is no
    /// checkpoint to restore it from: to initialize again would be to forget everything.
    fn recreate_session(&self, step: Option<i64>) -> Result<Session> {
        let manager = self.place.manager()?;
        let session = Session::with_config(&self.place.master, &self.place.graph, self.place.config.clone())?;
        if let Some(missing) = manager.why_not(&session)? {
            drop(session);
            return match self.has_checkpoint()? {
                true => self.prepare(&manager),
                false => Err(lost_state(step, &missing, self.place.checkpoint_dir.as_deref())),
            };
        }
        match went_back(&self.place.graph, &session, step)? {
            None => Ok(session),
            Some(_) if self.has_checkpoint()? => self.prepare(&manager),
            Some(found) => Err(set_back(step, found)),
        }
    }
}

/// Makes sessions of workers that are not the chief: they wait until the chief has made the model ready.
pub struct WorkerSessionCreator {
    place: Place,
    max_wait: Option<Duration>,
}

/// How long a worker waits for the chief if nothing else is said.
const MAX_WAIT: Duration = Duration::from_secs(30 * 60);

impl WorkerSessionCreator {
    /// Sessions of a graph in this process; waits for half an hour.
    pub fn new(graph: &Graph) -> WorkerSessionCreator {
        WorkerSessionCreator { place: Place::new(graph), max_wait: Some(MAX_WAIT) }
    }

    /// How long to wait; for ever if none.
    pub fn max_wait(mut self, limit: Option<Duration>) -> WorkerSessionCreator {
        self.max_wait = limit;
        self
    }
}

impl SessionCreator for WorkerSessionCreator {
    fn graph(&self) -> &Graph {
        &self.place.graph
    }

    fn create_session(&self) -> Result<Session> {
        let manager = self.place.manager()?;
        manager.wait_for_session(&self.place.master, &self.place.config, self.max_wait)
    }

    fn recreate_session(&self, step: Option<i64>) -> Result<Session> {
        let session = self.create_session()?;
        match went_back(&self.place.graph, &session, step)? {
            Some(found) if self.place.checkpoint_dir.is_none() => Err(set_back(step, found)),
            _ => Ok(session),
        }
    }
}

/// Where the step counter is, if that is less than where it was.
fn went_back(graph: &Graph, session: &Session, step: Option<i64>) -> Result<Option<i64>> {
    let (Some(counter), Some(step)) = (get_global_step(graph), step) else { return Ok(None) };
    let found: i64 = session.run(counter.value(), Feeds::new())?;
    Ok((found < step).then_some(found))
}

fn lost_state(step: Option<i64>, missing: &str, folder: Option<&str>) -> Error {
    let when = step.map_or(String::new(), |step| format!(" at global step {step}"));
    let cure = match folder {
        Some(folder) => format!("there is no checkpoint in {folder} to restore it from"),
        None => "set checkpoint_dir to restore it from a checkpoint".to_string(),
    };
    let message = format!("A task lost its state{when}, and training cannot go on where it was: {cure}. {missing}");
    Error::new(Code::DataLoss, message)
}

fn set_back(step: Option<i64>, found: i64) -> Error {
    let step = step.unwrap_or_default();
    let message = format!(
        "The global step went back from {step} to {found}: a task lost its state and was initialized again; set \
         checkpoint_dir to restore it from a checkpoint"
    );
    Error::new(Code::DataLoss, message)
}

//! Creates sessions: the chief initializes or restores the model, other workers wait for the chief.

use super::Scaffold;
use crate::get_global_step;
use crate::recovery::LastProgress;
use crate::session_manager::{Initialization, Recovery, SessionManager};
use graph::Graph;
use layers::Variable;
use session::{Session, SessionConfig};
use status::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Creates sessions in which the model is ready.
pub trait SessionCreator: Send {
    /// The graph of the sessions.
    fn graph(&self) -> &Graph;

    /// Creates the first session.
    fn create_session(&self) -> Result<Session>;

    /// Replaces a session that was lost when the step counter was at `step`. Implementations must not silently lose the
    /// progress that was made by then.
    fn recreate_session(&self, step: Option<i64>) -> Result<Session> {
        let _ = step;
        self.create_session()
    }
}

/// The server and the settings of a session.
#[derive(Clone)]
struct Place {
    graph: Graph,
    scaffold: Arc<Scaffold>,
    master: String,
    config: SessionConfig,
    recovery_wait: Option<Duration>,
    checkpoint_dir: Option<PathBuf>,
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

    fn target(&self) -> (&str, &SessionConfig) {
        (&self.master, &self.config)
    }

    fn manager(&self) -> Result<SessionManager> {
        let scaffold_nodes = self.scaffold.finalize_on(&crate::file_systems(&self.config), &self.graph)?;
        let manager = SessionManager::new(&self.graph)
            .ready_op(Some(&scaffold_nodes.ready_op))
            .ready_for_local_init_op(Some(&scaffold_nodes.ready_for_local_init_op))
            .local_init_op(Some(&scaffold_nodes.local_init_op), self.scaffold.local_init_feeds());
        Ok(match self.recovery_wait {
            Some(wait) => manager.recovery_wait(wait),
            None => manager,
        })
    }
}

macro_rules! place {
    ($($creator:ident),*) => {$(
        impl $creator {
            /// Sets the nodes around the model.
            pub fn scaffold(mut self, scaffold: Arc<Scaffold>) -> $creator {
                self.place.scaffold = scaffold;
                self
            }

            /// Sets the target of the session; in this process if empty.
            pub fn master(mut self, master: &str) -> $creator {
                self.place.master = master.to_string();
                self
            }

            /// Sets the configuration of the session.
            pub fn config(mut self, config: SessionConfig) -> $creator {
                self.place.config = config;
                self
            }

            /// Sets the folder of the checkpoints from which a lost model is restored.
            pub fn checkpoint_dir(mut self, folder: impl AsRef<Path>) -> $creator {
                self.place.checkpoint_dir = Some(folder.as_ref().to_path_buf());
                self
            }

            /// Sets the time between two attempts.
            pub fn recovery_wait(mut self, wait: Duration) -> $creator {
                self.place.recovery_wait = Some(wait);
                self
            }
        }
    )*};
}

place!(ChiefSessionCreator, WorkerSessionCreator);

/// Creates sessions of a chief: restored from the newest checkpoint, or initialized.
pub struct ChiefSessionCreator {
    place: Place,
    checkpoint: Option<PathBuf>,
    keep_newer: bool,
}

impl ChiefSessionCreator {
    /// Sessions of a graph in this process, without checkpoints.
    pub fn new(graph: &Graph) -> ChiefSessionCreator {
        ChiefSessionCreator { place: Place::new(graph), checkpoint: None, keep_newer: false }
    }

    /// Sets the checkpoint to restore, in place of the newest one of a folder.
    pub fn checkpoint(mut self, path: impl AsRef<Path>) -> ChiefSessionCreator {
        self.checkpoint = Some(path.as_ref().to_path_buf());
        self
    }

    /// Sets whether variables that still have values, on servers that were not restarted or have a journal, are kept
    /// if no checkpoint is newer. Otherwise they are restored or initialized, as in TensorFlow, and a warning is
    /// logged if that sets the step counter back.
    pub fn keep_newer_state(mut self, keep: bool) -> ChiefSessionCreator {
        self.keep_newer = keep;
        self
    }

    /// Calls `make` with the checkpoints that may be restored and the nodes that initialize.
    fn prepared(
        &self,
        make: impl FnOnce(&SessionManager, &Recovery<'_>, &Initialization<'_>) -> Result<Session>,
    ) -> Result<Session> {
        let manager = self.place.manager()?;
        let scaffold_nodes = self.place.scaffold.nodes()?;
        let recovery = Recovery {
            saver: Some(&scaffold_nodes.saver),
            checkpoint_dir: self.place.checkpoint_dir.as_deref(),
            checkpoint: self.checkpoint.as_deref(),
            wait_for_checkpoint: None,
            keep_newer: self.keep_newer,
        };
        let function = self.place.scaffold.init_function();
        let init = Initialization {
            op: Some(&scaffold_nodes.init_op),
            feeds: self.place.scaffold.init_feeds(),
            function: function.map(|function| function.as_ref() as &dyn Fn(&Session) -> Result<()>),
        };
        make(&manager, &recovery, &init)
    }
}

impl SessionCreator for ChiefSessionCreator {
    fn graph(&self) -> &Graph {
        &self.place.graph
    }

    fn create_session(&self) -> Result<Session> {
        let (master, config) = self.place.target();
        self.prepared(|manager, recovery, init| manager.prepare_session(master, config, recovery, init))
    }

    /// Keeps variables that still have values and restores the others. It is an error if there is no checkpoint,
    /// because initializing again would lose all progress.
    fn recreate_session(&self, step: Option<i64>) -> Result<Session> {
        let counter = get_global_step(&self.place.graph);
        let last = last(counter.as_ref(), step);
        self.prepared(|manager, recovery, init| {
            manager.prepare_again(self.place.target(), recovery, init, last).map(|(session, _)| session)
        })
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

    /// Sets how long to wait for the chief; without a limit if `None`.
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
        let counter = get_global_step(&self.place.graph);
        let (last, folder) = (last(counter.as_ref(), step), self.place.checkpoint_dir.as_deref());
        self.place.manager()?.wait_again(self.place.target(), self.max_wait, folder, last)
    }
}

fn last(counter: Option<&Variable>, step: Option<i64>) -> LastProgress<'_> {
    LastProgress { counter: counter.map(Variable::value), step, setting: "checkpoint_dir" }
}

//! Who makes sessions: the chief, which initializes or restores, and the others, which wait for it.

use super::Scaffold;
use crate::get_global_step;
use crate::recovery::Last;
use crate::session_manager::{Initialization, Recovery, SessionManager};
use graph::Graph;
use layers::Variable;
use session::{Session, SessionConfig};
use status::Result;
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

    fn target(&self) -> (&str, &SessionConfig) {
        (&self.master, &self.config)
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

    /// Makes a session from the checkpoints it may restore and the nodes that initialize.
    fn prepared(
        &self,
        make: impl FnOnce(&SessionManager, &Recovery<'_>, &Initialization<'_>) -> Result<Session>,
    ) -> Result<Session> {
        let manager = self.place.manager()?;
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

    /// State that is still there is used as it is; state that was lost is restored. It is an error if there is no
    /// checkpoint to restore it from: to initialize again would be to forget everything.
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
        let counter = get_global_step(&self.place.graph);
        let (last, folder) = (last(counter.as_ref(), step), self.place.checkpoint_dir.as_deref());
        self.place.manager()?.wait_again(self.place.target(), self.max_wait, folder, last)
    }
}

fn last(counter: Option<&Variable>, step: Option<i64>) -> Last<'_> {
    Last { counter: counter.map(Variable::value), step, setting: "checkpoint_dir" }
}

//! Settings of a new supervisor.

use super::last_session::LastSession;
use super::{Supervisor, check_devices};
use crate::coordination::Coordinator;
use crate::get_global_step;
use crate::hooks::event_file;
use crate::monitored::{InitFn, Scaffold};
use checkpoint::saver::Saver;
use graph::{Graph, Node, Output};
use io::FileSystems;
use io::saved_model::Saver as SaverDef;
use session::{Feeds, Session};
use status::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The settings of a new supervisor. By default it is that of a chief, which saves the model every ten minutes, and
/// summaries and the speed every two.
pub struct SupervisorBuilder {
    graph: Graph,
    scaffold: Scaffold,
    settings: Settings,
}

/// What a supervisor knows besides its nodes.
pub(super) struct Settings {
    pub is_chief: bool,
    pub logdir: Option<PathBuf>,
    pub init_feeds: Feeds,
    pub init_fn: Option<InitFn>,
    /// The step counter.
    pub step: Option<Output>,
    pub save_summaries: Option<Duration>,
    pub save_model: Option<Duration>,
    pub recovery_wait: Duration,
    pub stop_grace: Duration,
    pub keep_newer: bool,
    pub standard_services: bool,
    pub basename: String,
    pub systems: FileSystems,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            is_chief: true,
            logdir: None,
            init_feeds: Feeds::new(),
            init_fn: None,
            step: None,
            save_summaries: Some(Duration::from_secs(120)),
            save_model: Some(Duration::from_secs(600)),
            recovery_wait: Duration::from_secs(30),
            stop_grace: Duration::from_secs(120),
            keep_newer: false,
            standard_services: true,
            basename: "model.ckpt".to_string(),
            systems: FileSystems::local(),
        }
    }
}

impl SupervisorBuilder {
    pub(super) fn new(graph: &Graph) -> SupervisorBuilder {
        SupervisorBuilder { graph: graph.clone(), scaffold: Scaffold::new(), settings: Settings::default() }
    }

    /// Sets whether this process is the chief, which initializes, restores and saves the model.
    pub fn is_chief(mut self, is_chief: bool) -> SupervisorBuilder {
        self.settings.is_chief = is_chief;
        self
    }

    /// Sets the folder of checkpoints and events.
    pub fn logdir(mut self, folder: impl AsRef<Path>) -> SupervisorBuilder {
        self.settings.logdir = Some(folder.as_ref().to_path_buf());
        self
    }

    /// Sets the node that initializes the model.
    pub fn init_op(mut self, op: &Node, feeds: Feeds) -> SupervisorBuilder {
        self.scaffold = self.scaffold.init_op(op, Feeds::new());
        self.settings.init_feeds = feeds;
        self
    }

    /// Sets a function that is called after the node that initializes.
    pub fn init_fn(mut self, function: impl Fn(&Session) -> Result<()> + Send + Sync + 'static) -> SupervisorBuilder {
        self.settings.init_fn = Some(Box::new(function));
        self
    }

    /// Sets the output that gives the names of uninitialized variables.
    pub fn ready_op(mut self, op: &Output) -> SupervisorBuilder {
        self.scaffold = self.scaffold.ready_op(op);
        self
    }

    /// Sets the output that gives the names of the variables that local variables depend on and that are uninitialized.
    pub fn ready_for_local_init_op(mut self, op: &Output) -> SupervisorBuilder {
        self.scaffold = self.scaffold.ready_for_local_init_op(op);
        self
    }

    /// Sets the node that initializes the variables of this process.
    pub fn local_init_op(mut self, op: &Node) -> SupervisorBuilder {
        self.scaffold = self.scaffold.local_init_op(op, Feeds::new());
        self
    }

    /// Sets the summaries to write, in place of all summaries of the graph; `None` writes no summaries.
    pub fn summary_op<'a>(mut self, op: impl Into<Option<&'a Output>>) -> SupervisorBuilder {
        self.scaffold = match op.into() {
            Some(op) => self.scaffold.summary_op(op),
            None => self.scaffold.without_summaries(),
        };
        self
    }

    /// Sets the saver, in place of one of all variables; `None` writes no checkpoints.
    pub fn saver(mut self, saver: impl Into<Option<Arc<Saver>>>) -> SupervisorBuilder {
        let nothing = || Arc::new(Saver::from_def(&self.graph, SaverDef::default()));
        let saver = saver.into().unwrap_or_else(nothing);
        self.scaffold = self.scaffold.saver(saver);
        self
    }

    /// Sets the step counter, in place of the one of the graph.
    pub fn global_step(mut self, step: &Output) -> SupervisorBuilder {
        self.settings.step = Some(step.clone());
        self
    }

    /// Sets the interval of summaries and of the speed; `None` writes neither.
    pub fn save_summaries(mut self, every: Option<Duration>) -> SupervisorBuilder {
        self.settings.save_summaries = every;
        self
    }

    /// Sets the interval of checkpoints; `None` writes no checkpoints.
    pub fn save_model(mut self, every: Option<Duration>) -> SupervisorBuilder {
        self.settings.save_model = every;
        self
    }

    /// Sets the time between two checks whether the chief is ready.
    pub fn recovery_wait(mut self, wait: Duration) -> SupervisorBuilder {
        self.settings.recovery_wait = wait;
        self
    }

    /// Sets how long threads may run after a stop was requested.
    pub fn stop_grace(mut self, grace: Duration) -> SupervisorBuilder {
        self.settings.stop_grace = grace;
        self
    }

    /// Sets whether a starting chief keeps the variables of the servers if no checkpoint is newer. Otherwise the
    /// model is restored or initialized, as in TensorFlow, and a warning is logged if that sets the step counter
    /// back. A later session of the same supervisor keeps the variables in any case.
    pub fn keep_newer_state(mut self, keep: bool) -> SupervisorBuilder {
        self.settings.keep_newer = keep;
        self
    }

    /// Sets whether a session starts its threads: those that save and report, and queue runners. If not, see
    /// [`Supervisor::start_standard_services`] and [`start_queue_runners`](crate::start_queue_runners).
    pub fn standard_services(mut self, start: bool) -> SupervisorBuilder {
        self.settings.standard_services = start;
        self
    }

    /// Sets the name of checkpoints, to which the step is appended.
    pub fn checkpoint_basename(mut self, name: &str) -> SupervisorBuilder {
        self.settings.basename = name.to_string();
        self
    }

    /// Sets the file systems of checkpoints and events.
    pub fn file_systems(mut self, systems: &FileSystems) -> SupervisorBuilder {
        self.settings.systems = systems.clone();
        self
    }

    /// Adds the nodes that are missing, and finalizes the graph.
    pub fn build(self) -> Result<Supervisor> {
        let SupervisorBuilder { graph, scaffold, mut settings } = self;
        graph.check()?;
        if !settings.is_chief {
            check_devices(&graph)?;
        }
        settings.step = settings.step.or_else(|| get_global_step(&graph).map(|step| step.value().clone()));
        let folder = settings.logdir.as_ref().filter(|_| settings.is_chief);
        let events = folder.map(|folder| event_file(&settings.systems, folder)).transpose()?;
        let scaffold_nodes = scaffold.into_nodes(&settings.systems, &graph)?;
        let (coordinator, last_session) = (Coordinator::new(), LastSession::default());
        Ok(Supervisor { graph, scaffold_nodes, settings, events, coordinator, last_session })
    }
}

//! A supervisor in the making.

use super::seen::Seen;
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
use std::sync::Arc;
use std::time::Duration;

/// A supervisor in the making. Unless said otherwise: of a chief; the model is saved every ten minutes, summaries
/// and the speed every two.
pub struct SupervisorBuilder {
    graph: Graph,
    is_chief: bool,
    logdir: Option<String>,
    scaffold: Scaffold,
    init_feeds: Feeds,
    init_fn: Option<InitFn>,
    step: Option<Output>,
    save_summaries: Option<Duration>,
    save_model: Option<Duration>,
    recovery_wait: Duration,
    stop_grace: Duration,
    keep_newer: bool,
    standard_services: bool,
    basename: String,
    systems: FileSystems,
}

impl SupervisorBuilder {
    pub(super) fn new(graph: &Graph) -> SupervisorBuilder {
        SupervisorBuilder {
            graph: graph.clone(),
            is_chief: true,
            logdir: None,
            scaffold: Scaffold::new(),
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

    /// Whether this is the one that initializes, restores and saves.
    pub fn is_chief(mut self, is_chief: bool) -> SupervisorBuilder {
        self.is_chief = is_chief;
        self
    }

    /// Where checkpoints and events are written, and checkpoints are read from.
    pub fn logdir(mut self, folder: &str) -> SupervisorBuilder {
        self.logdir = Some(folder.to_string());
        self
    }

    /// Initializes with this node.
    pub fn init_op(mut self, op: &Node, feeds: Feeds) -> SupervisorBuilder {
        self.scaffold = self.scaffold.init_op(op, Feeds::new());
        self.init_feeds = feeds;
        self
    }

    /// Calls this after the node that initializes.
    pub fn init_fn(mut self, function: impl Fn(&Session) -> Result<()> + Send + Sync + 'static) -> SupervisorBuilder {
        self.init_fn = Some(Box::new(function));
        self
    }

    /// Asks this for the names of variables that have no value.
    pub fn ready_op(mut self, op: &Output) -> SupervisorBuilder {
        self.scaffold = self.scaffold.ready_op(op);
        self
    }

    /// Asks this for the names of variables without which those of this process cannot be initialized.
    pub fn ready_for_local_init_op(mut self, op: &Output) -> SupervisorBuilder {
        self.scaffold = self.scaffold.ready_for_local_init_op(op);
        self
    }

    /// Initializes the variables of this process with this node.
    pub fn local_init_op(mut self, op: &Node) -> SupervisorBuilder {
        self.scaffold = self.scaffold.local_init_op(op, Feeds::new());
        self
    }

    /// Takes summaries from this, in place of all summaries of the graph; none are written if none is given.
    pub fn summary_op<'a>(mut self, op: impl Into<Option<&'a Output>>) -> SupervisorBuilder {
        self.scaffold = match op.into() {
            Some(op) => self.scaffold.summary_op(op),
            None => self.scaffold.without_summaries(),
        };
        self
    }

    /// Writes and reads checkpoints with this, in place of a saver of all variables; there are none if none is given.
    pub fn saver(mut self, saver: impl Into<Option<Arc<Saver>>>) -> SupervisorBuilder {
        let nothing = || Arc::new(Saver::from_def(&self.graph, SaverDef::default()));
        let saver = saver.into().unwrap_or_else(nothing);
        self.scaffold = self.scaffold.saver(saver);
        self
    }

    /// Counts steps with this, in place of the graph's step counter.
    pub fn global_step(mut self, step: &Output) -> SupervisorBuilder {
        self.step = Some(step.clone());
        self
    }

    /// How often summaries and the speed are written; never if none.
    pub fn save_summaries(mut self, every: Option<Duration>) -> SupervisorBuilder {
        self.save_summaries = every;
        self
    }

    /// How often the model is saved; never if none.
    pub fn save_model(mut self, every: Option<Duration>) -> SupervisorBuilder {
        self.save_model = every;
        self
    }

    /// How long is waited between two looks at whether the chief is done.
    pub fn recovery_wait(mut self, wait: Duration) -> SupervisorBuilder {
        self.recovery_wait = wait;
        self
    }

    /// How long threads may run on after the end.
    pub fn stop_grace(mut self, grace: Duration) -> SupervisorBuilder {
        self.stop_grace = grace;
        self
    }

    /// Whether a chief that begins keeps what the servers have, if no checkpoint is newer. Otherwise it is restored or
    /// initialized, as by TensorFlow, and the log warns if that sets the step counter back. A session that is made
    /// again by the same supervisor goes on with what is there in any case.
    pub fn keep_newer_state(mut self, keep: bool) -> SupervisorBuilder {
        self.keep_newer = keep;
        self
    }

    /// Whether a session comes with its threads: those that save and report, and queue runners. If not, see
    /// [`Supervisor::start_standard_services`] and [`start_queue_runners`](crate::start_queue_runners).
    pub fn standard_services(mut self, start: bool) -> SupervisorBuilder {
        self.standard_services = start;
        self
    }

    /// What checkpoints are called before their step.
    pub fn checkpoint_basename(mut self, name: &str) -> SupervisorBuilder {
        self.basename = name.to_string();
        self
    }

    /// Where checkpoints and events are written: on these file systems.
    pub fn file_systems(mut self, systems: &FileSystems) -> SupervisorBuilder {
        self.systems = systems.clone();
        self
    }

    /// Makes the nodes that are missing, and lets the graph stay as it is.
    pub fn make(self) -> Result<Supervisor> {
        self.graph.check()?;
        if !self.is_chief {
            check_devices(&self.graph)?;
        }
        let step = self.step.or_else(|| get_global_step(&self.graph).map(|step| step.value().clone()));
        let folder = self.logdir.as_ref().filter(|_| self.is_chief);
        let events = folder.map(|folder| event_file(&self.systems, folder)).transpose()?;
        let pieces = self.scaffold.into_pieces(&self.systems, &self.graph)?;
        Ok(Supervisor {
            graph: self.graph,
            is_chief: self.is_chief,
            logdir: self.logdir,
            pieces,
            init_feeds: self.init_feeds,
            init_fn: self.init_fn,
            step,
            save_summaries: self.save_summaries,
            save_model: self.save_model,
            recovery_wait: self.recovery_wait,
            stop_grace: self.stop_grace,
            keep_newer: self.keep_newer,
            standard_services: self.standard_services,
            basename: self.basename,
            events,
            systems: self.systems,
            coordinator: Coordinator::new(),
            seen: Seen::default(),
        })
    }
}

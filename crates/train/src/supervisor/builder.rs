//! A supervisor in the making.

use super::{InitFn, Supervisor, check_devices};
use crate::coordination::Coordinator;
use crate::get_global_step;
use crate::hooks::event_file;
use crate::monitored::Scaffold;
use crate::saver::Saver;
use graph::{Graph, Node, Output};
use io::FileSystems;
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

    /// Initializes the variables of this process with this node.
    pub fn local_init_op(mut self, op: &Node) -> SupervisorBuilder {
        self.scaffold = self.scaffold.local_init_op(op, Feeds::new());
        self
    }

    /// Takes summaries from this.
    pub fn summary_op(mut self, op: &Output) -> SupervisorBuilder {
        self.scaffold = self.scaffold.summary_op(op);
        self
    }

    /// Writes and reads checkpoints with this.
    pub fn saver(mut self, saver: Arc<Saver>) -> SupervisorBuilder {
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
            basename: self.basename,
            events,
            coordinator: Coordinator::new(),
        })
    }
}

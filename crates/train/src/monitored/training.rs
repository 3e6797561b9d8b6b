//! The monitored session of a training program, with the hooks that most of them need.

use super::session::RetryLimits;
use super::{ChiefSessionCreator, MonitoredSession, Scaffold, SessionRunHook, WorkerSessionCreator};
use crate::FileWriter;
use crate::hooks::{CheckpointSaver, Every, IteratorSaver, StepCounter, SummarySaver, event_file};
use graph::Graph;
use input::DatasetIterator;
use session::SessionConfig;
use status::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The settings of a monitored session for training. By default it is that of a chief, in this process, without
/// checkpoints. With `checkpoint_dir`, it writes a checkpoint every ten minutes, and summaries and the speed every
/// hundred steps.
pub struct MonitoredTrainingSession {
    graph: Graph,
    master: String,
    is_chief: bool,
    checkpoint_dir: Option<PathBuf>,
    summary_dir: Option<PathBuf>,
    scaffold: Arc<Scaffold>,
    iterators: Vec<DatasetIterator>,
    hooks: Vec<Box<dyn SessionRunHook>>,
    chief_only_hooks: Vec<Box<dyn SessionRunHook>>,
    save_checkpoint: Option<Every>,
    save_in_background: bool,
    keep_newer_state: bool,
    save_summaries: Option<Every>,
    log_step_count_steps: Option<i64>,
    config: SessionConfig,
    max_wait: Duration,
    recovery_wait: Option<Duration>,
    stop_grace: Duration,
    save_graph: bool,
}

impl MonitoredTrainingSession {
    /// The settings of a session of a graph.
    pub fn new(graph: &Graph) -> MonitoredTrainingSession {
        MonitoredTrainingSession {
            graph: graph.clone(),
            master: String::new(),
            is_chief: true,
            checkpoint_dir: None,
            summary_dir: None,
            scaffold: Arc::default(),
            iterators: Vec::new(),
            hooks: Vec::new(),
            chief_only_hooks: Vec::new(),
            save_checkpoint: Some(Every::Time(Duration::from_secs(600))),
            save_in_background: true,
            keep_newer_state: false,
            save_summaries: Some(Every::Steps(100)),
            log_step_count_steps: Some(100),
            config: SessionConfig::default(),
            max_wait: Duration::from_secs(7200),
            recovery_wait: None,
            stop_grace: Duration::from_secs(120),
            save_graph: true,
        }
    }

    /// Sets the target of the session; in this process if empty.
    pub fn master(mut self, master: &str) -> MonitoredTrainingSession {
        self.master = master.to_string();
        self
    }

    /// Sets whether this process is the chief, which initializes, restores and saves the model.
    pub fn is_chief(mut self, is_chief: bool) -> MonitoredTrainingSession {
        self.is_chief = is_chief;
        self
    }

    /// Sets the folder of checkpoints. They are restored when training starts and after a task was lost.
    pub fn checkpoint_dir(mut self, folder: impl AsRef<Path>) -> MonitoredTrainingSession {
        self.checkpoint_dir = Some(folder.as_ref().to_path_buf());
        self
    }

    /// Sets the folder of summaries; by default that of the checkpoints.
    pub fn summary_dir(mut self, folder: impl AsRef<Path>) -> MonitoredTrainingSession {
        self.summary_dir = Some(folder.as_ref().to_path_buf());
        self
    }

    /// Sets the nodes around the model.
    pub fn scaffold(mut self, scaffold: Scaffold) -> MonitoredTrainingSession {
        self.scaffold = Arc::new(scaffold);
        self
    }

    /// Begins this iterator with the session, and saves its state with the checkpoints, so that training continues at the
    /// next element; see [`IteratorSaver`].
    pub fn iterator(mut self, iterator: &DatasetIterator) -> MonitoredTrainingSession {
        self.iterators.push(iterator.clone());
        self
    }

    /// Adds a hook.
    pub fn hook(mut self, hook: impl SessionRunHook + 'static) -> MonitoredTrainingSession {
        self.hooks.push(Box::new(hook));
        self
    }

    /// Adds a hook that only the chief runs.
    pub fn chief_only_hook(mut self, hook: impl SessionRunHook + 'static) -> MonitoredTrainingSession {
        self.chief_only_hooks.push(Box::new(hook));
        self
    }

    /// Sets the interval of checkpoints, such as `Every::Steps(50)`; `None` writes no checkpoints.
    pub fn save_checkpoint(mut self, every: impl Into<Option<Every>>) -> MonitoredTrainingSession {
        self.save_checkpoint = every.into();
        self
    }

    /// Sets whether training continues while a checkpoint is written; see [`CheckpointSaver::in_background`].
    pub fn save_in_background(mut self, background: bool) -> MonitoredTrainingSession {
        self.save_in_background = background;
        self
    }

    /// Sets whether a starting chief keeps the variables of the servers if no checkpoint is newer; see
    /// [`ChiefSessionCreator::keep_newer_state`].
    pub fn keep_newer_state(mut self, keep: bool) -> MonitoredTrainingSession {
        self.keep_newer_state = keep;
        self
    }

    /// Sets the interval of summaries; `None` writes no summaries.
    pub fn save_summaries(mut self, every: Option<Every>) -> MonitoredTrainingSession {
        self.save_summaries = every;
        self
    }

    /// Sets the number of steps between two reports of the speed; `None` reports no speed.
    pub fn log_step_count_steps(mut self, steps: Option<i64>) -> MonitoredTrainingSession {
        self.log_step_count_steps = steps;
        self
    }

    /// Sets the configuration of the session. Its file systems are also those of checkpoints and events.
    pub fn config(mut self, config: SessionConfig) -> MonitoredTrainingSession {
        self.config = config;
        self
    }

    /// Sets how long to wait for the chief, or for a lost task.
    pub fn max_wait(mut self, limit: Duration) -> MonitoredTrainingSession {
        self.max_wait = limit;
        self
    }

    /// Sets the time between two attempts.
    pub fn recovery_wait(mut self, wait: Duration) -> MonitoredTrainingSession {
        self.recovery_wait = Some(wait);
        self
    }

    /// Sets how long threads may run after a stop was requested.
    pub fn stop_grace(mut self, grace: Duration) -> MonitoredTrainingSession {
        self.stop_grace = grace;
        self
    }

    /// Sets whether the graph is written beside the checkpoints.
    pub fn save_graph(mut self, save: bool) -> MonitoredTrainingSession {
        self.save_graph = save;
        self
    }

    /// Creates the session and finalizes the graph.
    pub fn start(mut self) -> Result<MonitoredSession> {
        let mut limits = RetryLimits { limit: self.max_wait, grace: self.stop_grace, ..RetryLimits::default() };
        limits.wait = self.recovery_wait.map_or(limits.wait, |wait| wait.min(limits.wait));
        if !self.is_chief {
            let mut hooks = self.iterator_hooks();
            hooks.append(&mut self.hooks);
            return MonitoredSession::start(Box::new(self.worker()), hooks, true, limits);
        }
        let hooks = self.chief_hooks()?;
        MonitoredSession::start(Box::new(self.chief()), hooks, true, limits)
    }

    fn worker(self) -> WorkerSessionCreator {
        let mut creator = WorkerSessionCreator::new(&self.graph).scaffold(self.scaffold).master(&self.master);
        creator = creator.config(self.config).max_wait(Some(self.max_wait));
        if let Some(folder) = &self.checkpoint_dir {
            creator = creator.checkpoint_dir(folder);
        }
        match self.recovery_wait {
            Some(wait) => creator.recovery_wait(wait),
            None => creator,
        }
    }

    fn chief(self) -> ChiefSessionCreator {
        let mut creator = ChiefSessionCreator::new(&self.graph).scaffold(self.scaffold).master(&self.master);
        creator = creator.config(self.config).keep_newer_state(self.keep_newer_state);
        if let Some(folder) = &self.checkpoint_dir {
            creator = creator.checkpoint_dir(folder);
        }
        match self.recovery_wait {
            Some(wait) => creator.recovery_wait(wait),
            None => creator,
        }
    }

    /// The hook of the iterators, if there are any.
    fn iterator_hooks(&self) -> Vec<Box<dyn SessionRunHook>> {
        if self.iterators.is_empty() {
            return Vec::new();
        }
        let hook = IteratorSaver::new(&self.iterators);
        vec![Box::new(match (&self.checkpoint_dir, self.save_checkpoint) {
            (Some(folder), Some(every)) => hook.checkpoints_on(&crate::file_systems(&self.config), folder, every),
            _ => hook,
        })]
    }

    /// The hooks of a chief: those of iterators, `chief_only_hook`, the standard ones, then `hook`. States of iterators are
    /// saved before the model: one that is killed in between finds the state of its model.
    fn chief_hooks(&mut self) -> Result<Vec<Box<dyn SessionRunHook>>> {
        let mut hooks = self.iterator_hooks();
        hooks.append(&mut self.chief_only_hooks);
        let folder = self.summary_dir.as_ref().or(self.checkpoint_dir.as_ref());
        let systems = crate::file_systems(&self.config);
        let events: Option<Arc<FileWriter>> = folder.map(|folder| event_file(&systems, folder)).transpose()?;
        if let (Some(events), Some(steps)) = (&events, self.log_step_count_steps.filter(|&steps| steps > 0)) {
            hooks.push(Box::new(StepCounter::new(Every::Steps(steps), Some(events.clone()))));
        }
        if let (Some(events), Some(every)) = (&events, self.save_summaries) {
            hooks.push(Box::new(SummarySaver::of_scaffold(self.scaffold.clone(), every, events.clone())));
        }
        if let (Some(folder), Some(every)) = (&self.checkpoint_dir, self.save_checkpoint) {
            let mut saver = CheckpointSaver::of_scaffold(folder, every, self.scaffold.clone());
            saver = saver.save_graph(self.save_graph).in_background(self.save_in_background);
            hooks.push(Box::new(match events {
                Some(events) => saver.events(events),
                None => saver,
            }));
        }
        hooks.append(&mut self.hooks);
        Ok(hooks)
    }
}

//! The monitored session of a training program, with the hooks that nearly all of them want.

use super::session::Patience;
use super::{ChiefSessionCreator, MonitoredSession, Scaffold, SessionRunHook, WorkerSessionCreator};
use crate::FileWriter;
use crate::hooks::{CheckpointSaver, Every, StepCounter, SummarySaver, event_file};
use graph::Graph;
use session::SessionConfig;
use status::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A monitored session for training, in the making. Unless said otherwise: of a chief, in this process, without
/// checkpoints. With a folder for checkpoints, one is written every ten minutes, summaries and the speed every hundred
/// steps.
pub struct MonitoredTrainingSession {
    graph: Graph,
    master: String,
    is_chief: bool,
    checkpoint_dir: Option<PathBuf>,
    summary_dir: Option<PathBuf>,
    scaffold: Arc<Scaffold>,
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
    /// Trains a graph.
    pub fn new(graph: &Graph) -> MonitoredTrainingSession {
        MonitoredTrainingSession {
            graph: graph.clone(),
            master: String::new(),
            is_chief: true,
            checkpoint_dir: None,
            summary_dir: None,
            scaffold: Arc::default(),
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

    /// On this server; in this process if empty.
    pub fn master(mut self, master: &str) -> MonitoredTrainingSession {
        self.master = master.to_string();
        self
    }

    /// Whether this is the one that initializes, restores and saves.
    pub fn is_chief(mut self, is_chief: bool) -> MonitoredTrainingSession {
        self.is_chief = is_chief;
        self
    }

    /// Where checkpoints are written, and read from when training begins or a task was lost.
    pub fn checkpoint_dir(mut self, folder: impl AsRef<Path>) -> MonitoredTrainingSession {
        self.checkpoint_dir = Some(folder.as_ref().to_path_buf());
        self
    }

    /// Where summaries are written; beside the checkpoints unless said otherwise.
    pub fn summary_dir(mut self, folder: impl AsRef<Path>) -> MonitoredTrainingSession {
        self.summary_dir = Some(folder.as_ref().to_path_buf());
        self
    }

    /// The nodes around the model.
    pub fn scaffold(mut self, scaffold: Scaffold) -> MonitoredTrainingSession {
        self.scaffold = Arc::new(scaffold);
        self
    }

    /// One more hook.
    pub fn hook(mut self, hook: impl SessionRunHook + 'static) -> MonitoredTrainingSession {
        self.hooks.push(Box::new(hook));
        self
    }

    /// One more hook, if this is the chief.
    pub fn chief_only_hook(mut self, hook: impl SessionRunHook + 'static) -> MonitoredTrainingSession {
        self.chief_only_hooks.push(Box::new(hook));
        self
    }

    /// How often checkpoints are written; never if none.
    pub fn save_checkpoint(mut self, every: Option<Every>) -> MonitoredTrainingSession {
        self.save_checkpoint = every;
        self
    }

    /// Whether steps go on while a checkpoint is written; see [`CheckpointSaver::in_background`].
    pub fn save_in_background(mut self, background: bool) -> MonitoredTrainingSession {
        self.save_in_background = background;
        self
    }

    /// Whether a chief that begins keeps what the servers have, if no checkpoint is newer; see
    /// [`ChiefSessionCreator::keep_newer_state`].
    pub fn keep_newer_state(mut self, keep: bool) -> MonitoredTrainingSession {
        self.keep_newer_state = keep;
        self
    }

    /// How often summaries are written; never if none.
    pub fn save_summaries(mut self, every: Option<Every>) -> MonitoredTrainingSession {
        self.save_summaries = every;
        self
    }

    /// After how many steps the speed is written; never if none.
    pub fn log_step_count_steps(mut self, steps: Option<i64>) -> MonitoredTrainingSession {
        self.log_step_count_steps = steps;
        self
    }

    /// The configuration of the session; the file systems it was given are also those of checkpoints and events.
    pub fn config(mut self, config: SessionConfig) -> MonitoredTrainingSession {
        self.config = config;
        self
    }

    /// How long to wait for the chief, or for a lost task.
    pub fn max_wait(mut self, limit: Duration) -> MonitoredTrainingSession {
        self.max_wait = limit;
        self
    }

    /// How long is waited between two tries.
    pub fn recovery_wait(mut self, wait: Duration) -> MonitoredTrainingSession {
        self.recovery_wait = Some(wait);
        self
    }

    /// How long threads may run on after the end.
    pub fn stop_grace(mut self, grace: Duration) -> MonitoredTrainingSession {
        self.stop_grace = grace;
        self
    }

    /// Whether the graph is written beside the checkpoints.
    pub fn save_graph(mut self, save: bool) -> MonitoredTrainingSession {
        self.save_graph = save;
        self
    }

    /// Makes the session. The graph stays as it is from now on.
    pub fn start(mut self) -> Result<MonitoredSession> {
        let mut patience = Patience { limit: self.max_wait, grace: self.stop_grace, ..Patience::default() };
        patience.wait = self.recovery_wait.map_or(patience.wait, |wait| wait.min(patience.wait));
        if !self.is_chief {
            let hooks = std::mem::take(&mut self.hooks);
            return MonitoredSession::start(Box::new(self.worker()), hooks, true, patience);
        }
        let hooks = self.chief_hooks()?;
        MonitoredSession::start(Box::new(self.chief()), hooks, true, patience)
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

    /// The chief's own hooks, those that nearly all programs want, then the user's.
    fn chief_hooks(&mut self) -> Result<Vec<Box<dyn SessionRunHook>>> {
        let mut hooks = std::mem::take(&mut self.chief_only_hooks);
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

//! The master: sessions of clients, and what their steps become.

mod callable;
mod discover;
mod noting;
mod partial;
mod plans;
mod session;
mod step;

use crate::api::{DeviceAttributes, aside};
use crate::{SessionConfig, Worker, ids};
use graph::GraphDef;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use session::MasterSession;
use status::{Result, aborted};
use std::sync::Arc;
use tensor::Tensor;

pub use callable::CallableOptions;
pub use step::{RunMetadata, RunStep, RunStepAnswer};

/// The master of one task.
pub struct Master {
    worker: Arc<Worker>,
    /// What sessions get that do not ask for something else.
    default_config: SessionConfig,
    sessions: Mutex<FxHashMap<String, Arc<MasterSession>>>,
}

impl Master {
    /// The master that plans for clients of this worker's task.
    pub fn new(worker: Arc<Worker>) -> Arc<Master> {
        Master::with_default(worker, SessionConfig::default())
    }

    /// The same, with a configuration that is laid under that of every session.
    pub fn with_default(worker: Arc<Worker>, default_config: SessionConfig) -> Arc<Master> {
        Arc::new(Master { worker, default_config, sessions: Mutex::default() })
    }

    /// The worker of the same task.
    pub fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// Opens a session; gives its handle. The graph is at version 0.
    pub async fn create_session(&self, graph: GraphDef, config: SessionConfig) -> Result<String> {
        let handle = ids::session_handle();
        let config = config.laid_over(&self.default_config);
        let session = MasterSession::open(&self.worker, handle.clone(), graph, config).await?;
        self.sessions.lock().insert(handle.clone(), Arc::new(session));
        Ok(handle)
    }

    /// Adds nodes to a session's graph; gives its new version.
    pub fn extend_session(&self, session: &str, graph: &GraphDef, version: i64) -> Result<i64> {
        let session = self.session(session)?;
        aside(&*self.worker.peers, || session.extend(graph, version))
    }

    /// Runs a step.
    pub async fn run_step(&self, session: &str, request: RunStep) -> Result<RunStepAnswer> {
        self.session(session)?.run_step(request).await
    }

    /// Announces a step that will be run piece by piece; gives its handle.
    pub async fn partial_run_setup(
        &self,
        session: &str,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<String> {
        self.session(session)?.partial_run_setup(feeds, fetches, targets).await
    }

    /// Prepares a step; gives its handle.
    pub async fn make_callable(&self, session: &str, options: CallableOptions) -> Result<i64> {
        self.session(session)?.make_callable(options).await
    }

    /// Runs a prepared step.
    pub async fn run_callable(
        &self,
        session: &str,
        handle: i64,
        feeds: Vec<Tensor>,
    ) -> Result<(Vec<Tensor>, RunMetadata)> {
        self.session(session)?.run_callable(handle, feeds).await
    }

    /// Forgets a prepared step.
    pub fn release_callable(&self, session: &str, handle: i64) -> Result<()> {
        self.session(session)?.release_callable(handle)
    }

    /// Ends a session: its running steps are cancelled, its workers told.
    pub async fn close_session(&self, session: &str) -> Result<()> {
        let found = self.sessions.lock().remove(session);
        let found =
            found.ok_or_else(|| aborted!("Session {session} is not found. Possibly, this master has restarted."))?;
        found.close().await;
        Ok(())
    }

    /// The devices of a session; of this task and all its peers, if there is none.
    pub async fn list_devices(&self, session: &str) -> Result<Vec<DeviceAttributes>> {
        if session.is_empty() {
            let (devices, _) = discover::devices(&self.worker, &SessionConfig::default()).await?;
            return Ok(devices);
        }
        Ok(self.session(session)?.attributes.clone())
    }

    /// Ends all sessions and forgets containers on all tasks.
    pub async fn reset(&self, containers: Vec<String>) -> Result<()> {
        let sessions: Vec<_> = self.sessions.lock().drain().map(|(_, session)| session).collect();
        for session in sessions {
            session.close().await;
        }
        let cluster = self.worker.cluster();
        let mut calls = Vec::new();
        for task in cluster.tasks().filter(|task| task != self.worker.task()) {
            calls.push((self.worker.link(&cluster, &task)?, task));
        }
        self.worker.clear_containers(&containers);
        for (link, task) in calls {
            let cleaned = link.cleanup_all(containers.clone()).await;
            cleaned.map_err(|error| crate::api::from_task(error, &task.to_string()))?;
        }
        Ok(())
    }

    /// Ends all sessions: the server is going away.
    pub async fn shut_down(&self) {
        let sessions: Vec<_> = self.sessions.lock().drain().map(|(_, session)| session).collect();
        for session in sessions {
            session.close().await;
        }
    }

    fn session(&self, handle: &str) -> Result<Arc<MasterSession>> {
        self.sessions.lock().get(handle).cloned().ok_or_else(|| aborted!("Session {handle} is not found."))
    }
}

//! The master of a task: it plans the steps of its clients and runs them on the workers of the cluster.

mod callable;
mod collective_steps;
mod cost_graph;
mod discover;
mod partial;
mod plans;
pub(crate) mod session;
pub(crate) mod step;
mod transfer_log;

use crate::api::{DeviceAttributes, from_task};
use crate::runtime::run_long;
use crate::{SessionConfig, Worker, ids};
use futures_util::future::join_all;
use graph::GraphDef;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use session::MasterSession;
use status::{Error, Result, aborted, cancelled, unavailable};
use std::sync::Arc;
use tensor::Tensor;

pub use callable::CallableOptions;
pub use cost_graph::CostNode;
pub use step::{RunMetadata, RunStep, RunStepAnswer};

/// The master of one task. A session reaches it as a [`MasterClient`](crate::MasterClient).
pub struct Master {
    worker: Arc<Worker>,
    /// The configuration of sessions where they do not set their own.
    default_config: SessionConfig,
    sessions: Mutex<FxHashMap<String, Arc<MasterSession>>>,
}

impl Master {
    /// The master of this worker's task.
    pub fn new(worker: Arc<Worker>) -> Arc<Master> {
        Master::with_default(worker, SessionConfig::default())
    }

    /// A master with a default configuration: sessions use it where they set nothing themselves.
    pub fn with_default(worker: Arc<Worker>, default_config: SessionConfig) -> Arc<Master> {
        worker.set_collective_leader(&default_config.collective_group_leader);
        Arc::new(Master { worker, default_config, sessions: Mutex::default() })
    }

    /// The worker of the same task.
    pub fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// Opens a session; gives its handle. The graph is at version 0.
    pub async fn create_session(&self, graph: GraphDef, config: SessionConfig) -> Result<String> {
        let handle = ids::session_handle();
        let config = config.or_default(&self.default_config);
        let session = MasterSession::open(&self.worker, handle.clone(), graph, config).await?;
        self.sessions.lock().insert(handle.clone(), Arc::new(session));
        Ok(handle)
    }

    /// Adds nodes to a session's graph; gives its new version.
    pub fn extend_session(&self, session: &str, graph: &GraphDef, version: i64) -> Result<i64> {
        let session = self.session(session)?;
        run_long(&*self.worker.runtime, || session.extend(graph, version))
    }

    /// Runs a step.
    pub async fn run_step(&self, session: &str, request: RunStep) -> Result<RunStepAnswer> {
        self.session(session)?.run_step(request).await
    }

    /// Announces a partial run, a step that is run in several parts; gives its handle.
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

    /// Ends a session: cancels its running steps and ends it at all tasks.
    pub async fn close_session(&self, session: &str) -> Result<()> {
        let found = self.sessions.lock().remove(session);
        let found =
            found.ok_or_else(|| aborted!("Session {session} is not found. Possibly, this master has restarted."))?;
        found.close(closed()).await;
        Ok(())
    }

    /// The devices of a session; without a session, those of all tasks of the cluster.
    pub async fn list_devices(&self, session: &str) -> Result<Vec<DeviceAttributes>> {
        if session.is_empty() {
            let (devices, _) = discover::devices(&self.worker, &SessionConfig::default()).await?;
            return Ok(devices);
        }
        Ok(self.session(session)?.attributes.clone())
    }

    /// Ends all sessions and clears containers on all tasks. A task that cannot be reached is an error, but the others are
    /// cleared.
    pub async fn reset(&self, containers: Vec<String>) -> Result<()> {
        self.close_all(closed()).await;
        let cluster = self.worker.cluster();
        self.worker.clear_containers(&containers);
        let others = cluster.tasks().filter(|task| task != self.worker.task());
        let calls = others.map(|task| {
            let (link, containers) = (self.worker.link(&cluster, &task), containers.clone());
            async move {
                let cleaned = async { link?.cleanup_all(containers).await }.await;
                cleaned.map_err(|error| from_task(error, &task.to_string()))
            }
        });
        join_all(calls).await.into_iter().collect()
    }

    /// Ends all sessions because the server stops. The code of the error tells clients that they may try again later.
    pub async fn shut_down(&self) {
        self.close_all(unavailable!("Task {} was told to stop, and ends its steps", self.worker.task())).await;
    }

    async fn close_all(&self, error: Error) {
        let sessions: Vec<_> = self.sessions.lock().drain().map(|(_, session)| session).collect();
        join_all(sessions.iter().map(|session| session.close(error.clone()))).await;
    }

    fn session(&self, handle: &str) -> Result<Arc<MasterSession>> {
        self.sessions.lock().get(handle).cloned().ok_or_else(|| aborted!("Session {handle} is not found."))
    }
}

/// The error of steps whose session is closed by its client, in TensorFlow's words.
fn closed() -> Error {
    cancelled!("Step was cancelled by an explicit call to `Session::Close()`.")
}

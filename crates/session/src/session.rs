//! The session: a graph, its master, and the steps that are run.

use crate::block::block_on;
use crate::callable::Callable;
use crate::partial::PartialRun;
use crate::registration::Registration;
use crate::runtime::OwnedRuntime;
use crate::target::Connection;
use crate::{Feeds, FetchAs, Fetches, RunMetadata, RunOptions, SessionConfig, Values};
use cluster::{CallableOptions, DeviceAttributes, MasterClient, RunStep};
use graph::{Fetch, Graph, Output};
use status::{Result, internal};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tensor::Tensor;
use tokio::sync::Mutex;

/// Runs steps of a graph. Nodes that are added to the graph later are sent to the master with the next step.
///
/// ```
/// use flowgrid_session::{Session, feeds};
/// use graph::Graph;
/// use ops::array::placeholder;
/// use tensor::{DType, PartialShape};
///
/// let graph = Graph::with_ops(data::registry());
/// let x = placeholder(&graph.root(), DType::F32, PartialShape::scalar());
/// let y = &x * 2.0;
/// let session = Session::local(&graph);
/// let value: f32 = session.run_with(&y, feeds! { &x => 21.0f32 })?;
/// assert_eq!(value, 42.0);
/// # Ok::<(), status::Error>(())
/// ```
///
/// # Async programs
///
/// Every call exists twice. `run` blocks the calling thread until the step has ended; it may be called anywhere, but on a
/// thread of an async runtime it keeps that thread from running other tasks. `run_async` blocks no thread, works on any
/// executor, and cancels the step when its future is dropped. Dropping a session closes it, which blocks for the time of
/// one call; `close_async` before avoids that.
pub struct Session {
    graph: Graph,
    master: Arc<dyn MasterClient>,
    config: SessionConfig,
    registration: Mutex<Registration>,
    /// The threads through which a master in another process is reached.
    _runtime: Option<OwnedRuntime>,
}

impl Session {
    /// A session in this process, on the local processors.
    pub fn local(graph: &Graph) -> Session {
        let config = SessionConfig::default();
        Session::over(Connection::local(&config), graph, config)
    }

    /// A session on the server at `grpc://host:port`. For a server in this process, [`Server::session`] needs no
    /// connection.
    ///
    /// [`Server::session`]: crate::Server::session
    pub fn connect(target: &str, graph: &Graph) -> Result<Session> {
        Session::with_config(target, graph, SessionConfig::default())
    }

    /// A session on `target` (empty for this process) with a configuration.
    pub fn with_config(target: &str, graph: &Graph, config: SessionConfig) -> Result<Session> {
        Ok(Session::over(Connection::to(target, &config)?, graph, config))
    }

    pub(crate) fn over(connection: Connection, graph: &Graph, config: SessionConfig) -> Session {
        let Connection { master, runtime } = connection;
        Session { graph: graph.clone(), master, config, registration: Mutex::default(), _runtime: runtime }
    }

    pub(crate) fn master(&self) -> &dyn MasterClient {
        &*self.master
    }

    /// The graph it runs.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The configuration it was made with.
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// Runs a step without feeds and reads the fetched values as the type the caller names:
    /// `let loss: f32 = session.run(&loss)?;`
    pub fn run<V>(&self, fetches: impl FetchAs<V>) -> Result<V> {
        self.run_with(fetches, Feeds::new())
    }

    /// Runs a step without feeds: `let loss: f32 = session.run_async(&loss).await?;`
    pub async fn run_async<V>(&self, fetches: impl FetchAs<V>) -> Result<V> {
        self.run_with_async(fetches, Feeds::new()).await
    }

    /// Runs a step with feeds: `let (loss, ()): (f32, ()) = session.run_with((&loss, &train), feeds! { &x => batch })?;`
    pub fn run_with<V>(&self, fetches: impl FetchAs<V>, feeds: Feeds) -> Result<V> {
        self.run_with_options(fetches, feeds, RunOptions::default()).map(|(values, _)| values)
    }

    /// Runs a step with feeds. Dropping the future cancels the step.
    pub async fn run_with_async<V>(&self, fetches: impl FetchAs<V>, feeds: Feeds) -> Result<V> {
        self.run_with_options_async(fetches, feeds, RunOptions::default()).await.map(|(values, _)| values)
    }

    /// Runs a step with feeds and options. Also returns the metadata that the options ask for.
    pub fn run_with_options<V>(
        &self,
        fetches: impl FetchAs<V>,
        feeds: Feeds,
        options: RunOptions,
    ) -> Result<(V, RunMetadata)> {
        block_on(self.run_with_options_async(fetches, feeds, options))
    }

    /// Runs a step with feeds and options. Dropping the future cancels the step.
    pub async fn run_with_options_async<V>(
        &self,
        fetches: impl FetchAs<V>,
        feeds: Feeds,
        options: RunOptions,
    ) -> Result<(V, RunMetadata)> {
        let (mut values, metadata) = self.step(&asked(&fetches), feeds, options, None).await?;
        Ok((fetches.answer(&mut values)?, metadata))
    }

    /// Runs nodes for their effects; nothing is fetched: `session.execute(&train)?;`
    pub fn execute(&self, targets: impl Fetches) -> Result<()> {
        self.execute_with(targets, Feeds::new())
    }

    /// Runs nodes for their effects: `session.execute_async(&train).await?;`
    pub async fn execute_async(&self, targets: impl Fetches) -> Result<()> {
        self.execute_with_async(targets, Feeds::new()).await
    }

    /// Runs nodes for their effects, with feeds.
    pub fn execute_with(&self, targets: impl Fetches, feeds: Feeds) -> Result<()> {
        block_on(self.execute_with_async(targets, feeds))
    }

    /// Runs nodes for their effects, with feeds. Dropping the future cancels the step.
    pub async fn execute_with_async(&self, targets: impl Fetches, feeds: Feeds) -> Result<()> {
        let targets = asked(&targets).into_iter().map(|fetch| Fetch::Target(fetch.node().to_string()));
        self.step(&targets.collect::<Vec<_>>(), feeds, RunOptions::default(), None).await.map(drop)
    }

    /// Announces a step that is run in several parts, with all that will be fetched and fed.
    pub fn partial_run(&self, fetches: impl Fetches, feeds: &[&Output]) -> Result<PartialRun<'_>> {
        block_on(self.partial_run_async(fetches, feeds))
    }

    /// Announces a step that is run in several parts, with all that will be fetched and fed.
    pub async fn partial_run_async(&self, fetches: impl Fetches, feeds: &[&Output]) -> Result<PartialRun<'_>> {
        let (names, targets) = split(asked(&fetches).iter());
        let feeds = feeds.iter().map(|feed| feed.name()).collect();
        let session = self.handle().await?;
        Ok(PartialRun::new(self, self.master.partial_run_setup(&session, feeds, names, targets).await?))
    }

    /// Prepares a step with these feeds, in order, to be run many times.
    pub fn make_callable<F: Fetches>(&self, fetches: F, feeds: &[&Output]) -> Result<Callable<'_, F>> {
        block_on(self.make_callable_async(fetches, feeds))
    }

    /// Prepares a step with these feeds, in order, to be run many times.
    pub async fn make_callable_async<F: Fetches>(&self, fetches: F, feeds: &[&Output]) -> Result<Callable<'_, F>> {
        let asked = asked(&fetches);
        let (names, targets) = split(asked.iter());
        let feeds = feeds.iter().map(|feed| feed.name()).collect();
        let session = self.handle().await?;
        let options = CallableOptions { feeds, fetches: names, targets, ..CallableOptions::default() };
        let handle = self.master.make_callable(&session, options).await?;
        Ok(Callable::new(self, session, handle, fetches, asked))
    }

    /// The devices of the session.
    pub fn list_devices(&self) -> Result<Vec<DeviceAttributes>> {
        block_on(self.list_devices_async())
    }

    /// The devices of the session.
    pub async fn list_devices_async(&self) -> Result<Vec<DeviceAttributes>> {
        let session = self.handle().await?;
        self.master.list_devices(&session).await
    }

    /// Ends the session: running steps are cancelled, later ones are errors.
    pub fn close(&self) -> Result<()> {
        block_on(self.close_async())
    }

    /// Ends the session: running steps are cancelled, later ones are errors.
    pub async fn close_async(&self) -> Result<()> {
        let session = self.registration.lock().await.close();
        match session {
            Some(session) => self.master.close_session(&session).await,
            None => Ok(()),
        }
    }

    /// Ends all sessions of the server at `target` and clears containers there; the default one if none is named.
    pub fn reset(target: &str, containers: &[&str]) -> Result<()> {
        let connection = Connection::to(target, &SessionConfig::default())?;
        block_on(connection.master.reset(containers.iter().map(|container| container.to_string()).collect()))
    }

    /// Runs one step, or one part of a partial run.
    pub(crate) async fn step(
        &self,
        asked: &[Fetch],
        feeds: Feeds,
        options: RunOptions,
        partial: Option<String>,
    ) -> Result<(Values, RunMetadata)> {
        let session = self.handle().await?;
        // A fetch that is fed has its value already, and one that is named twice is fetched once.
        let mut found: HashMap<String, Tensor> = feeds.0.iter().cloned().collect();
        let mut seen = HashSet::new();
        let (fetches, targets) = split(asked.iter().filter(|fetch| match fetch {
            Fetch::Value(name) => !found.contains_key(name) && seen.insert(name.as_str()),
            Fetch::Target(_) => true,
        }));
        let step = RunStep { feeds: feeds.0, fetches, targets, options, partial };
        let answer = self.master.run_step(&session, step).await?;
        found.extend(answer.tensors);
        let value = |fetch: &Fetch| match fetch {
            Fetch::Target(_) => Ok(None),
            Fetch::Value(name) => {
                let tensor = found.get(name).cloned();
                tensor.map(Some).ok_or_else(|| internal!("the step gave no value for {name}"))
            }
        };
        Ok((Values(asked.iter().map(value).collect::<Result<_>>()?), answer.metadata))
    }

    /// The session's handle, once the master has all nodes that exist now.
    async fn handle(&self) -> Result<Arc<str>> {
        self.graph.check()?;
        self.registration.lock().await.handle(&self.graph, &self.master, &self.config).await
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // An error means that the master is gone, and the session with it.
        let _ = self.close();
    }
}

/// What is fetched, in order.
fn asked(fetches: &impl Fetches) -> Vec<Fetch> {
    let mut asked = Vec::new();
    fetches.ask(&mut asked);
    asked
}

/// The names of the values, and of the nodes that only run.
fn split<'a>(asked: impl Iterator<Item = &'a Fetch>) -> (Vec<String>, Vec<String>) {
    let (mut names, mut targets) = (Vec::new(), Vec::new());
    for fetch in asked {
        match fetch {
            Fetch::Value(name) => names.push(name.clone()),
            Fetch::Target(name) => targets.push(name.clone()),
        }
    }
    (names, targets)
}

//! The session: a graph, a master, and the steps run on it.

use crate::callable::Callable;
use crate::link::Link;
use crate::partial::PartialRun;
use crate::{Feeds, FetchAs, Fetches, RunMetadata, RunOptions, SessionConfig, Values};
use cluster::{CallableOptions, DeviceAttributes, RunStep};
use graph::{Fetch, Graph, Output};
use parking_lot::Mutex;
use status::{Result, failed_precondition, internal};
use std::collections::HashMap;

/// A graph that can be run. The master hears of nodes at the first step after they were made.
pub struct Session {
    graph: Graph,
    link: Link,
    config: SessionConfig,
    state: Mutex<State>,
}

/// What the master knows.
#[derive(Default)]
struct State {
    handle: Option<String>,
    version: i64,
    nodes: usize,
    functions: usize,
    closed: bool,
}

impl Session {
    /// A session in this process, on the local processors.
    pub fn local(graph: &Graph) -> Session {
        let config = SessionConfig::default();
        Session::over(Link::near(&config), graph, config)
    }

    /// A session on the server at `grpc://host:port`.
    pub fn connect(target: &str, graph: &Graph) -> Result<Session> {
        Session::with_config(target, graph, SessionConfig::default())
    }

    /// A session on `target` (empty for this process) with a configuration.
    pub fn with_config(target: &str, graph: &Graph, config: SessionConfig) -> Result<Session> {
        Ok(Session::over(Link::to(target, &config)?, graph, config))
    }

    fn over(link: Link, graph: &Graph, config: SessionConfig) -> Session {
        Session { graph: graph.clone(), link, config, state: Mutex::default() }
    }

    /// The graph it runs.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What it was made with.
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// Runs a step without feeds and reads the fetched values as the type the caller names:
    /// `let loss: f32 = session.run(&loss)?;`
    pub fn run<V>(&self, fetches: impl FetchAs<V>) -> Result<V> {
        self.run_with(fetches, Feeds::new())
    }

    /// Runs a step with feeds: `let (loss, ()): (f32, ()) = session.run_with((&loss, &train), feeds! { &x => batch })?;`
    pub fn run_with<V>(&self, fetches: impl FetchAs<V>, feeds: Feeds) -> Result<V> {
        self.run_with_options(fetches, feeds, RunOptions::default()).map(|(values, _)| values)
    }

    /// Runs a step with feeds and options. Also returns the metadata that the options asked for.
    pub fn run_with_options<V>(
        &self,
        fetches: impl FetchAs<V>,
        feeds: Feeds,
        options: RunOptions,
    ) -> Result<(V, RunMetadata)> {
        let mut asked = Vec::new();
        fetches.ask(&mut asked);
        let (mut values, metadata) = self.step(&asked, feeds, options, None)?;
        Ok((fetches.answer(&mut values)?, metadata))
    }

    /// Runs nodes for their effects; nothing is fetched: `session.execute(&train)?;`
    pub fn execute(&self, targets: impl Fetches) -> Result<()> {
        self.execute_with(targets, Feeds::new())
    }

    /// Runs nodes for their effects, with feeds.
    pub fn execute_with(&self, targets: impl Fetches, feeds: Feeds) -> Result<()> {
        let mut asked = Vec::new();
        targets.ask(&mut asked);
        let targets: Vec<Fetch> = asked.iter().map(|fetch| Fetch::Target(fetch.node().to_string())).collect();
        self.step(&targets, feeds, RunOptions::default(), None).map(drop)
    }

    /// Announces a step that is run piece by piece: all that will be fetched and fed.
    pub fn partial_run(&self, fetches: impl Fetches, feeds: &[&Output]) -> Result<PartialRun<'_>> {
        let mut asked = Vec::new();
        fetches.ask(&mut asked);
        let (names, targets) = split(&asked);
        let handle = self.handle()?;
        let feeds = feeds.iter().map(|feed| feed.name()).collect();
        let partial = self.link.partial_run_setup(&handle, feeds, names, targets)?;
        Ok(PartialRun::new(self, partial))
    }

    /// Prepares a step with these feeds, in order, to be run many times.
    pub fn make_callable<F: Fetches>(&self, fetches: F, feeds: &[&Output]) -> Result<Callable<'_, F>> {
        let mut asked = Vec::new();
        fetches.ask(&mut asked);
        let (names, targets) = split(&asked);
        let feeds = feeds.iter().map(|feed| feed.name()).collect();
        let session = self.handle()?;
        let options = CallableOptions { feeds, fetches: names, targets, ..CallableOptions::default() };
        let handle = self.link.make_callable(&session, options)?;
        Ok(Callable::new(&self.link, session, handle, self.config.step_timeout, fetches, asked))
    }

    /// The devices of the session.
    pub fn list_devices(&self) -> Result<Vec<DeviceAttributes>> {
        self.link.list_devices(&self.handle()?)
    }

    /// Ends the session: steps that run are cancelled, later ones are errors.
    pub fn close(&self) -> Result<()> {
        let handle = {
            let mut state = self.state.lock();
            state.closed = true;
            state.handle.take()
        };
        handle.map_or(Ok(()), |handle| self.link.close(&handle))
    }

    /// Ends all sessions of the server at `target` and forgets containers there; the default one if none is
    /// named.
    pub fn reset(target: &str, containers: &[&str]) -> Result<()> {
        let link = Link::to(target, &SessionConfig::default())?;
        link.reset(containers.iter().map(|container| container.to_string()).collect())
    }

    /// Runs one step, or one piece of a step.
    pub(crate) fn step(
        &self,
        asked: &[Fetch],
        feeds: Feeds,
        options: RunOptions,
        partial: Option<String>,
    ) -> Result<(Values, RunMetadata)> {
        let handle = self.handle()?;
        let (mut fetches, targets) = split(asked);
        // What is fed is known already, and what is asked for twice is the same.
        let mut found: HashMap<String, tensor::Tensor> = feeds.0.iter().cloned().collect();
        let mut seen = std::collections::HashSet::new();
        fetches.retain(|name| !found.contains_key(name) && seen.insert(name.clone()));
        let step = RunStep { feeds: feeds.0, fetches, targets, options, partial };
        let answer = self.link.run(&handle, step, self.config.step_timeout)?;
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

    /// The session's handle, once the master knows all nodes made so far.
    fn handle(&self) -> Result<String> {
        self.graph.check()?;
        let mut state = self.state.lock();
        if state.closed {
            return Err(failed_precondition!("Attempted to use a closed Session."));
        }
        let mut news = self.graph.def_from(state.nodes);
        let functions = news.library.functions.len();
        match &state.handle {
            None => {
                let nodes = news.nodes.len();
                let (handle, version) = self.link.create(news, &self.config)?;
                *state = State { handle: Some(handle.clone()), version, nodes, functions, closed: false };
                Ok(handle)
            }
            Some(handle) => {
                let handle = handle.clone();
                if !news.nodes.is_empty() || functions > state.functions {
                    if functions == state.functions {
                        news.library = Default::default();
                    }
                    state.version = self.link.extend(&handle, &news, state.version)?;
                    state.nodes += news.nodes.len();
                    state.functions = functions;
                }
                Ok(handle)
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The master may be gone already; nobody is left to be told.
        let _ = self.close();
    }
}

/// Names of values, and of nodes that only run.
fn split(asked: &[Fetch]) -> (Vec<String>, Vec<String>) {
    let (mut names, mut targets) = (Vec::new(), Vec::new());
    for fetch in asked {
        match fetch {
            Fetch::Value(name) => names.push(name.clone()),
            Fetch::Target(name) => targets.push(name.clone()),
        }
    }
    (names, targets)
}

//! What a session asks of a master, whether the master is in this process or in another one.

use crate::api::{DeviceAttributes, Future};
use crate::{CallableOptions, Master, RunMetadata, RunStep, RunStepAnswer, SessionConfig};
use graph::GraphDef;
use tensor::Tensor;

/// The master of a task. Sessions are named by the handle that `create_session` gives.
///
/// Every call can be polled on any thread and by any executor. Dropping its future cancels it.
pub trait MasterClient: Send + Sync {
    /// Opens a session; gives its handle and the version of its graph.
    fn create_session<'a>(&'a self, graph: GraphDef, config: &'a SessionConfig) -> Future<'a, (String, i64)>;

    /// Adds nodes to a session's graph, which must be at this version; gives its new version.
    fn extend_session<'a>(&'a self, session: &'a str, graph: GraphDef, version: i64) -> Future<'a, i64>;

    /// Runs a step, or one part of a partial run.
    fn run_step<'a>(&'a self, session: &'a str, step: RunStep) -> Future<'a, RunStepAnswer>;

    /// Announces a partial run: a step that is run in several parts. Gives its handle.
    fn partial_run_setup<'a>(
        &'a self,
        session: &'a str,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Future<'a, String>;

    /// Prepares a step; gives its handle.
    fn make_callable<'a>(&'a self, session: &'a str, options: CallableOptions) -> Future<'a, i64>;

    /// Runs a prepared step with one value for each of its feeds.
    fn run_callable<'a>(
        &'a self,
        session: &'a str,
        handle: i64,
        feeds: Vec<Tensor>,
    ) -> Future<'a, (Vec<Tensor>, RunMetadata)>;

    /// Forgets a prepared step.
    fn release_callable<'a>(&'a self, session: &'a str, handle: i64) -> Future<'a, ()>;

    /// Ends a session.
    fn close_session<'a>(&'a self, session: &'a str) -> Future<'a, ()>;

    /// The devices of a session.
    fn list_devices<'a>(&'a self, session: &'a str) -> Future<'a, Vec<DeviceAttributes>>;

    /// Ends all sessions of the master and clears containers on all tasks; the default one if none is named.
    fn reset(&self, containers: Vec<String>) -> Future<'_, ()>;
}

/// The master in this process, called without a thread or a copy in between.
impl MasterClient for Master {
    fn create_session<'a>(&'a self, graph: GraphDef, config: &'a SessionConfig) -> Future<'a, (String, i64)> {
        Box::pin(async move { Ok((Master::create_session(self, graph, config.clone()).await?, 0)) })
    }

    fn extend_session<'a>(&'a self, session: &'a str, graph: GraphDef, version: i64) -> Future<'a, i64> {
        Box::pin(async move { Master::extend_session(self, session, &graph, version) })
    }

    fn run_step<'a>(&'a self, session: &'a str, step: RunStep) -> Future<'a, RunStepAnswer> {
        Box::pin(Master::run_step(self, session, step))
    }

    fn partial_run_setup<'a>(
        &'a self,
        session: &'a str,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Future<'a, String> {
        Box::pin(Master::partial_run_setup(self, session, feeds, fetches, targets))
    }

    fn make_callable<'a>(&'a self, session: &'a str, options: CallableOptions) -> Future<'a, i64> {
        Box::pin(Master::make_callable(self, session, options))
    }

    fn run_callable<'a>(
        &'a self,
        session: &'a str,
        handle: i64,
        feeds: Vec<Tensor>,
    ) -> Future<'a, (Vec<Tensor>, RunMetadata)> {
        Box::pin(Master::run_callable(self, session, handle, feeds))
    }

    fn release_callable<'a>(&'a self, session: &'a str, handle: i64) -> Future<'a, ()> {
        Box::pin(async move { Master::release_callable(self, session, handle) })
    }

    fn close_session<'a>(&'a self, session: &'a str) -> Future<'a, ()> {
        Box::pin(Master::close_session(self, session))
    }

    fn list_devices<'a>(&'a self, session: &'a str) -> Future<'a, Vec<DeviceAttributes>> {
        Box::pin(Master::list_devices(self, session))
    }

    fn reset(&self, containers: Vec<String>) -> Future<'_, ()> {
        Box::pin(Master::reset(self, containers))
    }
}

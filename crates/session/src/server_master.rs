//! The master of a server in this process, called without its socket.

use cluster::{
    CallableOptions, DeviceAttributes, Future, Master, MasterClient, RunMetadata, RunStep, RunStepAnswer,
    SessionConfig, Task,
};
use graph::GraphDef;
use status::{Result, internal, unavailable};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tensor::Tensor;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Runs calls on the threads of the server, where calls from a socket run too: they may use its timers and connections,
/// and end with `Unavailable` when the server stops.
pub(crate) struct ServerMaster {
    pub master: Arc<Master>,
    pub runtime: Handle,
}

impl ServerMaster {
    fn call<T, F>(&self, call: impl FnOnce(Arc<Master>) -> F) -> Future<'static, T>
    where
        T: Send + 'static,
        F: std::future::Future<Output = Result<T>> + Send + 'static,
    {
        let task = self.master.worker().task().clone();
        Box::pin(Call { task, running: self.runtime.spawn(call(self.master.clone())) })
    }
}

/// A call on the server's threads; dropping it ends the call.
struct Call<T> {
    task: Task,
    running: JoinHandle<Result<T>>,
}

impl<T> std::future::Future for Call<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        Pin::new(&mut self.running).poll(context).map(|ended| {
            ended.unwrap_or_else(|error| match error.is_panic() {
                true => Err(internal!("a call to the master of {} panicked", self.task)),
                false => Err(unavailable!("The server of {} in this process has stopped", self.task)),
            })
        })
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl MasterClient for ServerMaster {
    fn create_session<'a>(&'a self, graph: GraphDef, config: &'a SessionConfig) -> Future<'a, (String, i64)> {
        let config = config.clone();
        self.call(async move |master| Ok((master.create_session(graph, config).await?, 0)))
    }

    fn extend_session<'a>(&'a self, session: &'a str, graph: GraphDef, version: i64) -> Future<'a, i64> {
        let session = session.to_string();
        self.call(async move |master| master.extend_session(&session, &graph, version))
    }

    fn run_step<'a>(&'a self, session: &'a str, step: RunStep) -> Future<'a, RunStepAnswer> {
        let session = session.to_string();
        self.call(async move |master| master.run_step(&session, step).await)
    }

    fn partial_run_setup<'a>(
        &'a self,
        session: &'a str,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Future<'a, String> {
        let session = session.to_string();
        self.call(async move |master| master.partial_run_setup(&session, feeds, fetches, targets).await)
    }

    fn make_callable<'a>(&'a self, session: &'a str, options: CallableOptions) -> Future<'a, i64> {
        let session = session.to_string();
        self.call(async move |master| master.make_callable(&session, options).await)
    }

    fn run_callable<'a>(
        &'a self,
        session: &'a str,
        handle: i64,
        feeds: Vec<Tensor>,
    ) -> Future<'a, (Vec<Tensor>, RunMetadata)> {
        let session = session.to_string();
        self.call(async move |master| master.run_callable(&session, handle, feeds).await)
    }

    fn release_callable<'a>(&'a self, session: &'a str, handle: i64) -> Future<'a, ()> {
        let session = session.to_string();
        self.call(async move |master| master.release_callable(&session, handle))
    }

    fn close_session<'a>(&'a self, session: &'a str) -> Future<'a, ()> {
        let session = session.to_string();
        self.call(async move |master| master.close_session(&session).await)
    }

    fn list_devices<'a>(&'a self, session: &'a str) -> Future<'a, Vec<DeviceAttributes>> {
        let session = session.to_string();
        self.call(async move |master| master.list_devices(&session).await)
    }

    fn reset(&self, containers: Vec<String>) -> Future<'_, ()> {
        self.call(async move |master| master.reset(containers).await)
    }
}

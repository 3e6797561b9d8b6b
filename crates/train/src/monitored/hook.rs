//! Hooks: the trait, what they add to a step, and what they get from it.

use crate::coordination::Coordinator;
use graph::{Fetch, Graph};
use parking_lot::Mutex;
use session::{Feeds, Fetches, FromTensor, RunMetadata, RunOptions, Session};
use status::{Result, invalid};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tensor::Tensor;

/// Observes and extends the steps of a session. All methods have a default that does nothing.
///
/// `begin` is called once; `after_create_session` for every session that is created; `before_run` and `after_run`
/// around every step; and `end` once, unless there was an error, after which `abandoned` is called.
pub trait SessionRunHook: Send {
    /// Called before the session is created: the last time that nodes can be added.
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        let _ = graph;
        Ok(())
    }

    /// Called after a session was created and its variables have values; again for every session that replaces a lost
    /// one.
    fn after_create_session(&mut self, context: &SessionContext<'_>) -> Result<()> {
        let _ = context;
        Ok(())
    }

    /// Called before a step; gives what to fetch, run and feed besides what the user asks for.
    fn before_run(&mut self, context: &RunContext<'_>) -> Result<RunArgs> {
        let _ = context;
        Ok(RunArgs::nothing())
    }

    /// Called after a step that succeeded, with the values of what `before_run` asked for, in that order.
    fn after_run(&mut self, context: &RunContext<'_>, values: &RunValues) -> Result<()> {
        let _ = (context, values);
        Ok(())
    }

    /// Called after the last step, while the session can still be used. Not called after an error.
    fn end(&mut self, session: &Session) -> Result<()> {
        let _ = session;
        Ok(())
    }

    /// Called after an error, before the session is closed: the last chance to finish work in progress. The caller of
    /// the step gets the error. Not called when a session is lost, since it cannot be used any more.
    fn abandoned(&mut self) {}
}

/// A hook whose owner keeps a handle, to read its results afterwards.
impl<H: SessionRunHook> SessionRunHook for Arc<Mutex<H>> {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.lock().begin(graph)
    }

    fn after_create_session(&mut self, context: &SessionContext<'_>) -> Result<()> {
        self.lock().after_create_session(context)
    }

    fn before_run(&mut self, context: &RunContext<'_>) -> Result<RunArgs> {
        self.lock().before_run(context)
    }

    fn after_run(&mut self, context: &RunContext<'_>, values: &RunValues) -> Result<()> {
        self.lock().after_run(context, values)
    }

    fn end(&mut self, session: &Session) -> Result<()> {
        self.lock().end(session)
    }

    fn abandoned(&mut self) {
        self.lock().abandoned();
    }
}

/// A session that was just created.
pub struct SessionContext<'a> {
    session: &'a Arc<Session>,
    coordinator: &'a Coordinator,
}

impl<'a> SessionContext<'a> {
    pub(crate) fn new(session: &'a Arc<Session>, coordinator: &'a Coordinator) -> SessionContext<'a> {
        SessionContext { session, coordinator }
    }

    /// The session itself, without hooks. Threads may keep it.
    pub fn session(&self) -> &'a Arc<Session> {
        self.session
    }

    /// The coordinator that stops threads which a hook starts, and waits for them when the session ends.
    pub fn coordinator(&self) -> &'a Coordinator {
        self.coordinator
    }
}

/// A step that is about to run, or has run.
pub struct RunContext<'a> {
    session: &'a Session,
    original: &'a RunArgs,
    stop: &'a AtomicBool,
}

impl<'a> RunContext<'a> {
    pub(crate) fn new(session: &'a Session, original: &'a RunArgs, stop: &'a AtomicBool) -> RunContext<'a> {
        RunContext { session, original, stop }
    }

    /// The session itself, without hooks.
    pub fn session(&self) -> &'a Session {
        self.session
    }

    /// What the user asks of the step.
    pub fn original_args(&self) -> &'a RunArgs {
        self.original
    }

    /// Requests that this step is the last one.
    pub fn request_stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Whether a stop was requested.
    pub fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// What a step fetches, runs and is fed.
#[derive(Clone, Debug, Default)]
pub struct RunArgs {
    /// The outputs to fetch and the nodes to run.
    pub fetches: Vec<Fetch>,
    /// The feeds.
    pub feeds: Feeds,
    /// The options of the step.
    pub options: RunOptions,
}

impl RunArgs {
    /// No fetches and no feeds.
    pub fn nothing() -> RunArgs {
        RunArgs::default()
    }

    /// These fetches, without feeds.
    pub fn fetch(fetches: impl Fetches) -> RunArgs {
        let mut args = RunArgs::default();
        fetches.ask(&mut args.fetches);
        args
    }

    /// The same, with these feeds.
    pub fn feeds(mut self, feeds: Feeds) -> RunArgs {
        self.feeds = feeds;
        self
    }

    /// The same, with these options.
    pub fn options(mut self, options: RunOptions) -> RunArgs {
        self.options = options;
        self
    }
}

/// The values of a step for one hook.
#[derive(Clone, Debug, Default)]
pub struct RunValues {
    pub(crate) values: Vec<Option<Tensor>>,
    pub(crate) metadata: Arc<RunMetadata>,
}

impl RunValues {
    /// The value of the fetch at this position.
    pub fn get<T: FromTensor>(&self, place: usize) -> Result<T> {
        match self.values.get(place) {
            Some(Some(tensor)) => T::from_tensor(tensor.clone()),
            Some(None) => T::from_nothing(),
            None => Err(invalid!("fetch {place} is out of range; the hook has {} fetches", self.values.len())),
        }
    }

    /// The number of fetches.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no fetches.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// What the options of the step asked for, such as a trace.
    pub fn metadata(&self) -> &RunMetadata {
        &self.metadata
    }
}

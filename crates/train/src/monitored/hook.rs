//! What watches the steps of a session: the trait of hooks, what they ask of a step and what they are told.

use crate::coordination::Coordinator;
use graph::{Fetch, Graph};
use parking_lot::Mutex;
use session::{Feeds, Fetches, FromTensor, RunMetadata, RunOptions, Session};
use status::{Result, invalid};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tensor::Tensor;

/// Something that watches the steps of a session. Every part has a default that does nothing.
///
/// `begin` is called once; then, for every session that is made, `after_create_session`; around every step
/// `before_run` and `after_run`; and `end` once, unless there was an error, after which `abandoned` is called.
pub trait SessionRunHook: Send {
    /// Before the session is made: the last time nodes can be added.
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        let _ = graph;
        Ok(())
    }

    /// After a session was made and its variables have values; again for every session that takes the place of
    /// one that was lost.
    fn after_create_session(&mut self, context: &SessionContext<'_>) -> Result<()> {
        let _ = context;
        Ok(())
    }

    /// Before a step: what to ask of it besides what the user asks.
    fn before_run(&mut self, context: &RunContext<'_>) -> Result<RunArgs> {
        let _ = context;
        Ok(RunArgs::nothing())
    }

    /// After a step that went well: the answers to what `before_run` asked, in that order.
    fn after_run(&mut self, context: &RunContext<'_>, values: &RunValues) -> Result<()> {
        let _ = (context, values);
        Ok(())
    }

    /// After the last step, while the session can still be used. Not called after an error.
    fn end(&mut self, session: &Session) -> Result<()> {
        let _ = session;
        Ok(())
    }

    /// After an error, before the session is closed: the last moment for what is still under way in it. Whoever runs
    /// the steps has the error. Not called when a session is lost, which has nothing more to give.
    fn abandoned(&mut self) {}
}

/// A hook of which its owner keeps a handle, to look at it afterwards.
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

/// A session that was just made.
pub struct SessionContext<'a> {
    session: &'a Arc<Session>,
    coordinator: &'a Coordinator,
}

impl<'a> SessionContext<'a> {
    pub(crate) fn new(session: &'a Arc<Session>, coordinator: &'a Coordinator) -> SessionContext<'a> {
        SessionContext { session, coordinator }
    }

    /// The session itself, without hooks; it may be kept by threads.
    pub fn session(&self) -> &'a Arc<Session> {
        self.session
    }

    /// What stops threads that a hook starts, and waits for them when the session ends.
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

    /// What the user asked of the step.
    pub fn original_args(&self) -> &'a RunArgs {
        self.original
    }

    /// Lets this step be the last one.
    pub fn request_stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Whether this step will be the last one.
    pub fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// What is asked of a step and given to it.
#[derive(Clone, Debug, Default)]
pub struct RunArgs {
    /// What is fetched, and which nodes only run.
    pub fetches: Vec<Fetch>,
    /// What is fed.
    pub feeds: Feeds,
    /// How it is run.
    pub options: RunOptions,
}

impl RunArgs {
    /// Nothing.
    pub fn nothing() -> RunArgs {
        RunArgs::default()
    }

    /// These fetches.
    pub fn fetch(fetches: impl Fetches) -> RunArgs {
        let mut args = RunArgs::default();
        fetches.ask(&mut args.fetches);
        args
    }

    /// The same, and these values.
    pub fn feeds(mut self, feeds: Feeds) -> RunArgs {
        self.feeds = feeds;
        self
    }

    /// The same, run with these options.
    pub fn options(mut self, options: RunOptions) -> RunArgs {
        self.options = options;
        self
    }
}

/// What a step answered to one hook.
#[derive(Clone, Debug, Default)]
pub struct RunValues {
    pub(crate) values: Vec<Option<Tensor>>,
    pub(crate) metadata: Arc<RunMetadata>,
}

impl RunValues {
    /// The answer to the fetch in this place.
    pub fn get<T: FromTensor>(&self, place: usize) -> Result<T> {
        match self.values.get(place) {
            Some(Some(tensor)) => T::from_tensor(tensor.clone()),
            Some(None) => T::from_nothing(),
            None => Err(invalid!("Fetch {place} was read where {} were asked for", self.values.len())),
        }
    }

    /// How many answers there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether nothing was asked for.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// What the options of the step asked for.
    pub fn metadata(&self) -> &RunMetadata {
        &self.metadata
    }
}

//! The monitored session: hooks around every step, and a new session where one was lost.

use super::step::run_hooked;
use super::{SessionContext, SessionCreator, SessionRunHook};
use crate::coordination::{Coordinator, JoinOptions, start_queue_runners};
use crate::get_global_step;
use crate::session_manager::is_lost;
use checkpoint::step_number;
use graph::{Fetch, Fetchable, Graph};
use session::{Feeds, FetchAs, Fetches, RunOptions, Session};
use status::{Code, Error, Result, failed_precondition};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tensor::Tensor;

/// A session with hooks around every step. If a task is lost (`Aborted`, `Unavailable`), it creates a new session,
/// restores the variables, and runs the step again; all other errors go to the caller.
///
/// `close` ends the hooks. Dropping it without `close`, as after an error, abandons them.
pub struct MonitoredSession {
    creator: Box<dyn SessionCreator>,
    hooks: Vec<Box<dyn SessionRunHook>>,
    session: Option<(Arc<Session>, Coordinator)>,
    stop: AtomicBool,
    recovers: bool,
    counter: Option<Fetch>,
    step: Option<i64>,
    limits: RetryLimits,
}

/// The time limits of replacing a lost session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryLimits {
    /// The time limit of all attempts.
    pub limit: Duration,
    /// The time between two attempts.
    pub wait: Duration,
    /// How long threads may run after a stop was requested.
    pub grace: Duration,
}

impl Default for RetryLimits {
    fn default() -> RetryLimits {
        RetryLimits { limit: Duration::from_secs(7200), wait: Duration::from_secs(1), grace: Duration::from_secs(120) }
    }
}

impl MonitoredSession {
    /// Begins the hooks and creates the session.
    pub fn new(
        creator: impl SessionCreator + 'static,
        hooks: Vec<Box<dyn SessionRunHook>>,
    ) -> Result<MonitoredSession> {
        MonitoredSession::start(Box::new(creator), hooks, true, RetryLimits::default())
    }

    /// Sets how long threads may run after a stop was requested; the default is two minutes.
    pub fn stop_grace(mut self, grace: Duration) -> MonitoredSession {
        self.limits.grace = grace;
        self
    }

    pub(crate) fn start(
        creator: Box<dyn SessionCreator>,
        hooks: Vec<Box<dyn SessionRunHook>>,
        recovers: bool,
        limits: RetryLimits,
    ) -> Result<MonitoredSession> {
        let mut monitored = MonitoredSession {
            creator,
            hooks,
            session: None,
            stop: AtomicBool::new(false),
            recovers,
            counter: None,
            step: None,
            limits,
        };
        let graph = monitored.creator.graph().clone();
        monitored.hooks.iter_mut().try_for_each(|hook| hook.begin(&graph))?;
        monitored.counter = get_global_step(&graph).map(|step| step.value().fetch());
        monitored.retry(|monitored| monitored.open(false))?;
        Ok(monitored)
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        self.creator.graph()
    }

    /// Whether a hook, a thread or the user requested a stop. A thread that lost its task does not count: the next
    /// step creates a new session.
    pub fn should_stop(&self) -> bool {
        let by_thread = self.session.as_ref().is_some_and(|(_, coordinator)| {
            coordinator.should_stop() && !coordinator.requested_error().is_some_and(|error| self.is_recoverable(&error))
        });
        by_thread || self.stop.load(Ordering::SeqCst)
    }

    fn is_recoverable(&self, error: &Error) -> bool {
        self.recovers && is_lost(error)
    }

    /// Requests a stop.
    pub fn request_stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// The step counter as the last step read it.
    pub fn last_step(&self) -> Option<i64> {
        self.step
    }

    /// Runs a step without feeds.
    pub fn run<V>(&mut self, fetches: impl FetchAs<V>) -> Result<V> {
        self.run_with(fetches, Feeds::new())
    }

    /// Runs nodes and fetches nothing.
    pub fn execute(&mut self, targets: impl Fetches) -> Result<()> {
        self.execute_with(targets, Feeds::new())
    }

    /// Runs nodes with feeds and fetches nothing.
    pub fn execute_with(&mut self, targets: impl Fetches, feeds: Feeds) -> Result<()> {
        let mut asked = Vec::new();
        targets.ask(&mut asked);
        let names: Vec<&str> = asked.iter().map(Fetch::node).collect();
        self.run_with::<Vec<()>>(names, feeds).map(drop)
    }

    /// Runs a step with feeds.
    pub fn run_with<V>(&mut self, fetches: impl FetchAs<V>, feeds: Feeds) -> Result<V> {
        self.run_with_options(fetches, feeds, RunOptions::default())
    }

    /// Runs a step with feeds and options; hooks may add options.
    pub fn run_with_options<V>(&mut self, fetches: impl FetchAs<V>, feeds: Feeds, options: RunOptions) -> Result<V> {
        loop {
            let session = self.opened()?;
            match self.run_once(&session, &fetches, &feeds, &options) {
                Err(error) if self.is_recoverable(&error) => self.lose(&error),
                result => return result,
            }
        }
    }

    fn run_once<V>(
        &mut self,
        session: &Session,
        fetches: &impl FetchAs<V>,
        feeds: &Feeds,
        options: &RunOptions,
    ) -> Result<V> {
        self.check_threads()?;
        let (hooks, counter) = (&mut self.hooks, self.counter.as_ref());
        let result = run_hooked(session, hooks, &self.stop, fetches, (feeds, options), counter);
        // If a thread failed, its error is the cause: the step failed because its queue was closed.
        let (values, step) = result.or_else(|error| self.check_threads().and(Err(error)))?;
        self.step = step.or(self.step);
        Ok(values)
    }

    /// The error of a thread, if one failed.
    fn check_threads(&self) -> Result<()> {
        let error = self.session.as_ref().and_then(|(_, coordinator)| coordinator.requested_error());
        error.map_or(Ok(()), Err)
    }

    /// Calls `function` with a session that runs steps with or without hooks. If the session is lost meanwhile,
    /// `function` is called again from the start.
    pub fn run_step_fn<V>(&mut self, mut function: impl FnMut(&mut StepContext<'_>) -> Result<V>) -> Result<V> {
        loop {
            let session = self.opened()?;
            match function(&mut StepContext { monitored: self, session: session.clone() }) {
                Err(error) if self.is_recoverable(&error) => self.lose(&error),
                result => return result,
            }
        }
    }

    /// Calls `function` until a stop is requested or the input ends (`OutOfRange`); then closes the session.
    pub fn until_stop(mut self, mut function: impl FnMut(&mut MonitoredSession) -> Result<()>) -> Result<()> {
        while !self.should_stop() {
            match function(&mut self) {
                Err(error) if error.code == Code::OutOfRange => break,
                result => result?,
            }
        }
        self.close()
    }

    /// Ends the hooks, stops the threads, and closes the session. If a thread failed, its error is returned and the
    /// hooks are abandoned.
    pub fn close(mut self) -> Result<()> {
        let Some((session, coordinator)) = self.session.take() else { return Ok(()) };
        let ended = match coordinator.requested_error().filter(|error| !is_lost(error)) {
            None => self.hooks.iter_mut().try_for_each(|hook| hook.end(&session)),
            Some(error) => Err(error),
        };
        // Tasks that are lost by now do not matter, since training is done.
        let unless_lost = |error: Error| if is_lost(&error) { Ok(()) } else { Err(error) };
        let joined = end_threads(&coordinator, self.limits.grace).or_else(unless_lost);
        if ended.is_err() {
            self.abandon_hooks();
        }
        ended.and(joined).and(session.close().or_else(unless_lost))
    }

    /// The session itself, without hooks.
    pub fn raw_session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref().map(|(session, _)| session)
    }

    fn lose(&mut self, error: &Error) {
        tracing::info!("A task was lost; creating a new session. {error}");
        self.abandon();
    }

    /// Ends the session after an error. Hooks may finish work in progress.
    fn give_up(&mut self) {
        if let Some((_, coordinator)) = &self.session {
            coordinator.request_stop();
            self.abandon_hooks();
        }
        self.abandon();
    }

    fn abandon_hooks(&mut self) {
        self.hooks.iter_mut().for_each(|hook| hook.abandoned());
    }

    /// Closes the session and stops its threads, ignoring errors.
    fn abandon(&mut self) {
        if let Some((session, coordinator)) = self.session.take() {
            coordinator.request_stop();
            // Closing the session cancels the steps that threads wait for.
            let _ = session.close();
            let _ = end_threads(&coordinator, self.limits.grace);
        }
    }

    /// The session, replaced if it was lost.
    fn opened(&mut self) -> Result<Arc<Session>> {
        if self.session.is_none() {
            self.retry(|monitored| monitored.open(true))?;
        }
        let session = self.session.as_ref().map(|(session, _)| session.clone());
        session.ok_or_else(|| failed_precondition!("Attempted to use a closed Session."))
    }

    fn open(&mut self, again: bool) -> Result<()> {
        let session = Arc::new(match again {
            true => self.creator.recreate_session(self.step)?,
            false => self.creator.create_session()?,
        });
        let coordinator = Coordinator::new();
        self.session = Some((session.clone(), coordinator.clone()));
        let begun = self.begin_session(&session, &coordinator, again);
        match &begun {
            Ok(()) => {}
            Err(error) if self.is_recoverable(error) => self.abandon(),
            Err(_) => self.give_up(),
        }
        begun
    }

    fn begin_session(&mut self, session: &Arc<Session>, coordinator: &Coordinator, again: bool) -> Result<()> {
        start_queue_runners(session, coordinator)?;
        let context = SessionContext::new(session, coordinator);
        self.hooks.iter_mut().try_for_each(|hook| hook.after_create_session(&context))?;
        self.note_step(session, again)
    }

    /// Reads the step counter of a new session.
    fn note_step(&mut self, session: &Session, again: bool) -> Result<()> {
        let Some(counter) = self.counter.clone() else { return Ok(()) };
        let name = match &counter {
            Fetch::Value(name) | Fetch::Target(name) => name.as_str(),
        };
        let found = step_number(&session.run::<Tensor>(name)?)?;
        if let Some(before) = self.step.filter(|&before| again && found < before) {
            tracing::warn!("The global step went back from {before} to {found}: restored from a checkpoint");
        }
        self.step = Some(found);
        Ok(())
    }

    /// Repeats `make` while tasks are lost, within the time limit.
    fn retry(&mut self, mut make: impl FnMut(&mut MonitoredSession) -> Result<()>) -> Result<()> {
        let begin = Instant::now();
        loop {
            let error = match make(self) {
                Err(error) if self.is_recoverable(&error) => error,
                result => return result,
            };
            if begin.elapsed() + self.limits.wait > self.limits.limit {
                let seconds = self.limits.limit.as_secs_f64();
                let message = format!("The session could not be created within {seconds} secs. {}", error.message);
                return Err(Error::new(Code::DeadlineExceeded, message));
            }
            tracing::info!("A task was lost while the session was created; trying again. {error}");
            std::thread::sleep(self.limits.wait);
        }
    }
}

impl Drop for MonitoredSession {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Stops the threads of a session and waits for them. Threads that wait for a step end when the session is closed.
fn end_threads(coordinator: &Coordinator, grace: Duration) -> Result<()> {
    coordinator.request_stop();
    coordinator.join_with(&JoinOptions { grace, ignore_live_threads: true })
}

/// The argument of a step function.
pub struct StepContext<'a> {
    monitored: &'a mut MonitoredSession,
    session: Arc<Session>,
}

impl StepContext<'_> {
    /// The session itself: its steps have no hooks.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Runs a step with hooks around it.
    pub fn run_with_hooks<V>(&mut self, fetches: impl FetchAs<V>, feeds: Feeds) -> Result<V> {
        self.monitored.run_once(&self.session, &fetches, &feeds, &RunOptions::default())
    }

    /// Requests that this step is the last one.
    pub fn request_stop(&self) {
        self.monitored.request_stop();
    }
}

/// A session with hooks around every step that does not recover: the error of a lost task goes to the caller.
pub struct SingularMonitoredSession(MonitoredSession);

impl SingularMonitoredSession {
    /// Begins the hooks and creates the session.
    pub fn new(
        creator: impl SessionCreator + 'static,
        hooks: Vec<Box<dyn SessionRunHook>>,
    ) -> Result<SingularMonitoredSession> {
        MonitoredSession::start(Box::new(creator), hooks, false, RetryLimits::default()).map(SingularMonitoredSession)
    }

    /// Sets how long threads may run after a stop was requested; the default is two minutes.
    pub fn stop_grace(self, grace: Duration) -> SingularMonitoredSession {
        SingularMonitoredSession(self.0.stop_grace(grace))
    }

    /// Calls `function` until a stop is requested or the input ends; then closes the session.
    pub fn until_stop(self, function: impl FnMut(&mut MonitoredSession) -> Result<()>) -> Result<()> {
        self.0.until_stop(function)
    }

    /// Ends the hooks and closes the session.
    pub fn close(self) -> Result<()> {
        self.0.close()
    }
}

impl std::ops::Deref for SingularMonitoredSession {
    type Target = MonitoredSession;
    fn deref(&self) -> &MonitoredSession {
        &self.0
    }
}

impl std::ops::DerefMut for SingularMonitoredSession {
    fn deref_mut(&mut self) -> &mut MonitoredSession {
        &mut self.0
    }
}

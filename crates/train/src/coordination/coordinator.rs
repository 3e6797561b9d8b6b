//! A stop that all threads of a program share, and the error that was its reason.

use parking_lot::{Condvar, Mutex};
use status::{Code, Error, Result, internal};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Lets threads stop together: any of them may ask for it, all see it, and whoever joins them gets the error that
/// was the reason. A cheap shared handle.
///
/// The first request counts. An error of a clean kind (the end of the input, unless said otherwise) asks for a stop
/// but is no failure.
#[derive(Clone)]
pub struct Coordinator(Arc<Inner>);

struct Inner {
    clean: Vec<Code>,
    state: Mutex<State>,
    /// Told when a stop is asked for and when a thread ends.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stop: bool,
    error: Option<Error>,
    joined: bool,
    threads: Vec<(String, JoinHandle<()>)>,
    /// Groups of threads by name; a group runs as long as somebody holds its mark.
    groups: Vec<(String, Weak<()>)>,
}

impl State {
    /// The first reason is the one that counts.
    fn stop(&mut self, error: Option<Error>) {
        if !self.stop {
            (self.stop, self.error) = (true, error);
        }
    }
}

/// How threads are waited for.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// How long threads may run on after a stop was asked for.
    pub grace: Duration,
    /// Threads that run on after that are no error.
    pub ignore_live_threads: bool,
}

impl Default for JoinOptions {
    fn default() -> JoinOptions {
        JoinOptions { grace: Duration::from_secs(120), ignore_live_threads: false }
    }
}

/// Threads that others started tell nobody when they end, so they are looked at this often.
const LOOK: Duration = Duration::from_millis(20);

impl Default for Coordinator {
    fn default() -> Coordinator {
        Coordinator::new()
    }
}

impl Coordinator {
    /// A coordinator for which the end of the input is a clean reason to stop.
    pub fn new() -> Coordinator {
        Coordinator::with_clean(&[Code::OutOfRange])
    }

    /// A coordinator for which errors of these kinds are clean reasons to stop.
    pub fn with_clean(codes: &[Code]) -> Coordinator {
        Coordinator(Arc::new(Inner { clean: codes.to_vec(), state: Mutex::default(), changed: Condvar::new() }))
    }

    /// Asks all threads to stop.
    pub fn request_stop(&self) {
        self.0.state.lock().stop(None);
        self.0.changed.notify_all();
    }

    /// Asks all threads to stop because of an error, which `join` returns if it is the first and not a clean one. If
    /// all were joined already, nobody would hear of it: then the error comes back.
    pub fn request_stop_with(&self, error: Error) -> Result<()> {
        let mut state = self.0.state.lock();
        match Some(error).filter(|error| !self.0.clean.contains(&error.code)) {
            Some(error) if state.joined => return Err(error),
            error => state.stop(error),
        }
        self.0.changed.notify_all();
        Ok(())
    }

    /// Whether a stop was asked for.
    pub fn should_stop(&self) -> bool {
        self.0.state.lock().stop
    }

    /// Waits until a stop is asked for, no longer than `timeout` if there is one; tells whether it was.
    pub fn wait_for_stop(&self, timeout: Option<Duration>) -> bool {
        let mut state = self.0.state.lock();
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        while !state.stop {
            match end {
                None => self.0.changed.wait(&mut state),
                Some(end) if self.0.changed.wait_until(&mut state, end).timed_out() => break,
                Some(_) => {}
            }
        }
        state.stop
    }

    /// Runs something; if it fails, everybody is asked to stop because of it, and nothing is given back.
    pub fn stop_on_error<T>(&self, work: impl FnOnce() -> Result<T>) -> Option<T> {
        work().map_err(|error| self.stop_or_log(error)).ok()
    }

    fn stop_or_log(&self, error: Error) {
        if let Err(error) = self.request_stop_with(error) {
            tracing::warn!("An error after all threads were joined: {error}");
        }
    }

    /// Starts a thread that is waited for by `join`; if it fails or panics, everybody is asked to stop.
    pub fn spawn(&self, name: &str, work: impl FnOnce(&Coordinator) -> Result<()> + Send + 'static) -> Result<()> {
        let (own, called) = (self.clone(), name.to_string());
        let run = move || {
            let ending = Ending { coordinator: own, name: called };
            ending.coordinator.stop_on_error(|| work(&ending.coordinator));
        };
        // It may fail before it is registered.
        self.0.state.lock().joined = false;
        let started = std::thread::Builder::new().name(name.to_string()).spawn(run);
        let thread = started.map_err(|error| internal!("Cannot start thread {name}: {error}"))?;
        self.register_thread(name, thread);
        Ok(())
    }

    /// A thread that is waited for by `join`, started by somebody else.
    pub fn register_thread(&self, name: &str, thread: JoinHandle<()>) {
        let mut state = self.0.state.lock();
        state.joined = false;
        state.threads.push((name.to_string(), thread));
    }

    /// The threads that were started since the last join.
    #[cfg(test)]
    pub(crate) fn threads(&self) -> Vec<String> {
        self.0.state.lock().threads.iter().map(|(name, _)| name.clone()).collect()
    }

    /// A mark for the threads of a group to hold; none while a thread of the group runs.
    pub(crate) fn begin_group(&self, name: &str) -> Option<Arc<()>> {
        let mut state = self.0.state.lock();
        state.groups.retain(|(_, mark)| mark.strong_count() > 0);
        if state.groups.iter().any(|(known, _)| known == name) {
            return None;
        }
        let mark = Arc::new(());
        state.groups.push((name.to_string(), Arc::downgrade(&mark)));
        Some(mark)
    }

    /// Forgets that a stop was asked for, and why.
    pub fn clear_stop(&self) {
        let mut state = self.0.state.lock();
        (state.stop, state.error, state.joined) = (false, None, false);
    }

    /// Whether `join` has ended since the last thread was started.
    pub fn joined(&self) -> bool {
        self.0.state.lock().joined
    }

    /// The error because of which a stop was asked for, if one was.
    pub fn requested_error(&self) -> Option<Error> {
        self.0.state.lock().error.clone()
    }

    /// Waits until all threads have ended. After a stop was asked for they get two minutes.
    pub fn join(&self) -> Result<()> {
        self.join_with(&JoinOptions::default())
    }

    /// As `join`, with options: the error because of which a stop was asked for, else one that lists the threads
    /// that still run after the grace period.
    pub fn join_with(&self, options: &JoinOptions) -> Result<()> {
        let mut state = self.0.state.lock();
        let mut end = None;
        while state.threads.iter().any(|(_, thread)| !thread.is_finished()) {
            if state.stop && end.is_none() {
                end = Some(Instant::now() + options.grace);
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            self.0.changed.wait_for(&mut state, LOOK);
        }
        let (ended, live): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.threads).into_iter().partition(|(_, thread)| thread.is_finished());
        let laggards: Vec<String> = live.iter().map(|(name, _)| name.clone()).collect();
        state.threads = live;
        state.joined = true;
        drop(state);
        for (_, thread) in ended {
            // A panic was reported by the thread itself.
            let _ = thread.join();
        }
        match self.requested_error() {
            Some(error) => Err(error),
            None if laggards.is_empty() || options.ignore_live_threads => Ok(()),
            None => Err(Error::new(
                Code::DeadlineExceeded,
                format!("Coordinator stopped with threads still running: {}", laggards.join(" ")),
            )),
        }
    }
}

/// Tells those who wait that a thread ends, and everybody if it does so in a panic.
struct Ending {
    coordinator: Coordinator,
    name: String,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.coordinator.stop_or_log(internal!("Thread {} panicked", self.name));
        }
        self.coordinator.0.changed.notify_all();
    }
}

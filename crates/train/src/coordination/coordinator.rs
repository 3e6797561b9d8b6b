//! Lets the threads of a program stop together, and keeps the error because of which they stopped.

use parking_lot::{Condvar, Mutex};
use status::{Code, Error, Result, internal};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Lets threads stop together: any thread may request a stop, all of them see it, and `join` gives the error that was
/// the reason. Cloning it is cheap.
///
/// The first request counts. An error with a clean code (by default `OutOfRange`, the end of the input) requests a
/// stop but is not a failure.
#[derive(Clone)]
pub struct Coordinator(Arc<Inner>);

struct Inner {
    clean: Vec<Code>,
    state: Mutex<State>,
    /// Notified when a stop is requested and when a thread ends.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stop: bool,
    error: Option<Error>,
    joined: bool,
    threads: Vec<(String, JoinHandle<()>)>,
    /// Groups of threads by name. A group is running as long as its mark is alive.
    groups: Vec<(String, Weak<()>)>,
}

impl State {
    /// Only the first request counts.
    fn stop(&mut self, error: Option<Error>) {
        if !self.stop {
            (self.stop, self.error) = (true, error);
        }
    }
}

/// Options of [`Coordinator::join_with`].
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// How long threads may run after a stop was requested.
    pub grace: Duration,
    /// Whether threads that still run after that are ignored.
    pub ignore_live_threads: bool,
}

impl Default for JoinOptions {
    fn default() -> JoinOptions {
        JoinOptions { grace: Duration::from_secs(120), ignore_live_threads: false }
    }
}

/// Registered threads of other owners do not notify the coordinator when they end, so it polls them at this interval.
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

    /// A coordinator for which errors with these codes are clean reasons to stop.
    pub fn with_clean(codes: &[Code]) -> Coordinator {
        Coordinator(Arc::new(Inner { clean: codes.to_vec(), state: Mutex::default(), changed: Condvar::new() }))
    }

    /// Requests a stop of all threads.
    pub fn request_stop(&self) {
        self.0.state.lock().stop(None);
        self.0.changed.notify_all();
    }

    /// Requests a stop because of an error, which `join` returns if it is the first and not a clean one. If all
    /// threads were joined already, `join` will not report it, so it is returned here.
    pub fn request_stop_with(&self, error: Error) -> Result<()> {
        let mut state = self.0.state.lock();
        match Some(error).filter(|error| !self.0.clean.contains(&error.code)) {
            Some(error) if state.joined => return Err(error),
            error => state.stop(error),
        }
        self.0.changed.notify_all();
        Ok(())
    }

    /// Whether a stop was requested.
    pub fn should_stop(&self) -> bool {
        self.0.state.lock().stop
    }

    /// Waits until a stop is requested, at most for `timeout`; gives whether it was.
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

    /// Calls a function. If it fails, requests a stop because of the error and gives `None`.
    pub fn stop_on_error<T>(&self, work: impl FnOnce() -> Result<T>) -> Option<T> {
        work().map_err(|error| self.stop_or_log(error)).ok()
    }

    fn stop_or_log(&self, error: Error) {
        if let Err(error) = self.request_stop_with(error) {
            tracing::warn!("An error after all threads were joined: {error}");
        }
    }

    /// Starts a thread that `join` waits for. If it fails or panics, a stop is requested.
    pub fn spawn(&self, name: &str, work: impl FnOnce(&Coordinator) -> Result<()> + Send + 'static) -> Result<()> {
        let (own, called) = (self.clone(), name.to_string());
        let run = move || {
            let ending = Ending { coordinator: own, name: called };
            ending.coordinator.stop_on_error(|| work(&ending.coordinator));
        };
        // The thread may fail before it is registered, so this comes first.
        self.0.state.lock().joined = false;
        let started = std::thread::Builder::new().name(name.to_string()).spawn(run);
        let thread = started.map_err(|error| internal!("Cannot start thread {name}: {error}"))?;
        self.register_thread(name, thread);
        Ok(())
    }

    /// Registers a thread that was started elsewhere, so that `join` waits for it.
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

    /// The mark for the threads of a new group; none while the group of this name is running.
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

    /// Clears the request to stop and its error.
    pub fn clear_stop(&self) {
        let mut state = self.0.state.lock();
        (state.stop, state.error, state.joined) = (false, None, false);
    }

    /// Whether `join` has returned since the last thread was started.
    pub fn joined(&self) -> bool {
        self.0.state.lock().joined
    }

    /// The error because of which a stop was requested, if there is one.
    pub fn requested_error(&self) -> Option<Error> {
        self.0.state.lock().error.clone()
    }

    /// Waits until all threads have ended. After a stop was requested they have two minutes.
    pub fn join(&self) -> Result<()> {
        self.join_with(&JoinOptions::default())
    }

    /// As [`Coordinator::join`], with options. Gives the error because of which a stop was requested, else one that
    /// lists the threads that still run after the grace period.
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
            // The thread has reported its panic already.
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

/// Notifies the threads that wait when a thread ends, and requests a stop if it panicked.
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

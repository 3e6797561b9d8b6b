//! A thread beside a server that writes the counters of the server.

use super::Sample;
use crate::FileWriter;
use crate::hooks::{Every, Timer, event_file};
use io::FileSystems;
use io::fs::path::{join, to_str};
use session::ServerCounters;
use status::{Result, internal};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Writes the counters of a server to an event file, at an interval and once more at the end. The steps of the events
/// are those in which the task took part. An idle server writes nothing.
///
/// A thread of its own writes, which ends with `close`, or when this is dropped.
pub struct ServerMetrics {
    thread: Option<(Sender<()>, JoinHandle<Result<()>>)>,
}

/// The time between two checks whether enough steps were run.
const LOOK: Duration = Duration::from_millis(100);

impl ServerMetrics {
    /// Creates an event file in `folder/<job>-<task>`.
    pub fn start(
        counters: ServerCounters,
        systems: &FileSystems,
        folder: impl AsRef<Path>,
        every: Every,
    ) -> Result<ServerMetrics> {
        let task = counters.task();
        let events = event_file(systems, join(to_str(folder.as_ref())?, &format!("{}-{}", task.job, task.index)))?;
        let mut report = Report { counters, events, timer: Timer::new(every), last: None };
        // Not on the thread, which may start after the first steps of the server.
        report.begin();
        let pause = match every {
            Every::Time(time) => time,
            Every::Steps(_) => LOOK,
        };
        let (stop, stopped) = channel();
        let thread = thread::Builder::new().name("flowgrid-metrics".to_string());
        let thread = thread.spawn(move || report.run(pause, &stopped));
        let thread = thread.map_err(|error| internal!("no thread for metrics: {error}"))?;
        Ok(ServerMetrics { thread: Some((stop, thread)) })
    }

    /// Writes the last report; gives whether everything was written.
    pub fn close(mut self) -> Result<()> {
        self.stop()
    }

    fn stop(&mut self) -> Result<()> {
        let Some((stop, thread)) = self.thread.take() else { return Ok(()) };
        drop(stop);
        thread.join().unwrap_or_else(|_| Err(internal!("the thread that writes metrics panicked")))
    }
}

impl Drop for ServerMetrics {
    fn drop(&mut self) {
        // Errors are lost here; call `close` to see them.
        let _ = self.stop();
    }
}

struct Report {
    counters: ServerCounters,
    events: Arc<FileWriter>,
    timer: Timer,
    last: Option<(Sample, Instant)>,
}

impl Report {
    /// Starts counting steps and measuring rates.
    fn begin(&mut self) {
        self.timer.done(self.steps());
        self.last = Some((self.sample(), Instant::now()));
    }

    fn run(mut self, pause: Duration, stopped: &Receiver<()>) -> Result<()> {
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
            if self.timer.is_due(self.steps()) {
                self.write()?;
            }
        }
        if self.timer.last_step() != Some(self.steps()) {
            self.write()?;
        }
        self.events.close()
    }

    fn write(&mut self) -> Result<()> {
        let (sample, now) = (self.sample(), Instant::now());
        let step = sample.tasks.first().map_or(0, |(_, counts)| counts.steps);
        let before = self.last.as_ref().map(|(last, time)| (last, now.saturating_duration_since(*time)));
        self.events.add_scalars(sample.scalars(before), step)?;
        self.timer.done(step);
        self.last = Some((sample, now));
        self.events.flush()
    }

    fn steps(&self) -> i64 {
        self.counters.task_counts().steps
    }

    fn sample(&self) -> Sample {
        let counters = &self.counters;
        let queues = counters.queue_lengths().into_iter().map(|(name, length)| (name, length as i64));
        Sample {
            tasks: vec![(counters.task().clone(), counters.task_counts())],
            gradients: counters.gradient_counts(),
            queues: queues.collect(),
        }
    }
}

//! Event files that kernels write.

use io::FileSystems;
use io::event::EventWriter;
use op::Resource;
use parking_lot::Mutex;
use status::Result;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tensor::Bytes;

/// An event file. Events are queued until the queue is long, old or flushed.
pub struct SummaryWriter {
    state: Mutex<State>,
    most_waiting: usize,
    longest_wait: Duration,
}

struct State {
    file: EventWriter,
    waiting: Vec<Bytes>,
    flushed: Instant,
}

impl Resource for SummaryWriter {
    const TYPE_NAME: &'static str = "N10tensorflow22SummaryWriterInterfaceE";
}

/// The limits of a writer's queue, in time and in events, as the ops set them.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// The number of events that may wait.
    pub events: i32,
    /// The longest time that they may wait, in milliseconds.
    pub millis: i32,
}

impl SummaryWriter {
    /// A new file in a folder. Its name is unique: it contains the process id and a counter.
    pub(super) fn create(
        systems: &FileSystems,
        folder: &str,
        patience: Patience,
        suffix: &str,
    ) -> Result<SummaryWriter> {
        static FILES: AtomicU64 = AtomicU64::new(0);
        let dot = if suffix.starts_with('.') { "" } else { "." };
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let suffix = format!(".{}.{number}{dot}{suffix}", std::process::id());
        let file = EventWriter::create(systems, folder, now(), &io::event::host_name(), &suffix)?;
        let state = State { file, waiting: Vec::new(), flushed: Instant::now() };
        Ok(SummaryWriter {
            state: Mutex::new(state),
            most_waiting: usize::try_from(patience.events).unwrap_or(0),
            longest_wait: Duration::from_millis(u64::try_from(patience.millis).unwrap_or(0)),
        })
    }

    /// Adds an Event message.
    pub fn write(&self, event: Bytes) -> Result<()> {
        let mut state = self.state.lock();
        state.waiting.push(event);
        if state.waiting.len() > self.most_waiting || state.flushed.elapsed() > self.longest_wait {
            return state.flush();
        }
        Ok(())
    }

    /// Flushes the file, so that readers see all events.
    pub fn flush(&self) -> Result<()> {
        self.state.lock().flush()
    }
}

impl State {
    fn flush(&mut self) -> Result<()> {
        for event in self.waiting.drain(..) {
            self.file.write_message(&event)?;
        }
        self.file.flush()?;
        self.flushed = Instant::now();
        Ok(())
    }
}

impl Drop for SummaryWriter {
    fn drop(&mut self) {
        if let Err(error) = self.state.get_mut().flush() {
            tracing::warn!("events are lost: {error}");
        }
    }
}

/// Seconds since 1970.
pub(super) fn now() -> f64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0.0, |elapsed| elapsed.as_micros() as f64 / 1.0e6)
}

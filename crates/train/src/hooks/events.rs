//! Where hooks report: a file of events, or whatever takes events.

use bytes::Bytes;
use io::event::{Event, EventWhat, SessionLog, SummaryData, SummaryValue, host_name, read_summary};
use io::{EventWriter, FileSystems};
use parking_lot::Mutex;
use status::Result;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Something that takes events.
pub trait EventSink: Send + Sync {
    /// Takes an event.
    fn add_event(&self, event: Event) -> Result<()>;

    /// Lets others see all events so far.
    fn flush(&self) -> Result<()>;
}

impl dyn EventSink {
    /// Something that happened to a session.
    pub fn add_session_log(&self, log: SessionLog, step: i64) -> Result<()> {
        self.add(EventWhat::Session(log), step)
    }

    /// One number under a tag.
    pub fn add_scalar(&self, tag: &str, value: f32, step: i64) -> Result<()> {
        let data = SummaryData::Scalar(value);
        let value = SummaryValue { tag: tag.to_string(), data, ..SummaryValue::default() };
        self.add(EventWhat::Summary(vec![value]), step)
    }

    /// The values in a Summary message, which summary ops give.
    pub fn add_summary(&self, message: Bytes, step: i64) -> Result<()> {
        self.add(EventWhat::Summary(read_summary(message)?), step)
    }

    /// Anything, now.
    pub fn add(&self, what: EventWhat, step: i64) -> Result<()> {
        self.add_event(Event { wall_time: now(), step, what, writer: None })
    }
}

/// A file of events in a folder. It is made when the first event comes.
pub struct EventFile {
    systems: FileSystems,
    folder: String,
    writer: Mutex<Option<EventWriter>>,
}

impl EventFile {
    /// A file in this folder.
    pub fn new(folder: &str) -> Arc<EventFile> {
        Arc::new(EventFile { systems: FileSystems::local(), folder: folder.to_string(), writer: Mutex::new(None) })
    }
}

impl EventSink for EventFile {
    fn add_event(&self, event: Event) -> Result<()> {
        let mut writer = self.writer.lock();
        if writer.is_none() {
            // Several files may begin in the same second. Every `RandomState` has keys of its own.
            let suffix = format!(".{:016x}", RandomState::new().hash_one(()));
            *writer = Some(EventWriter::create(&self.systems, &self.folder, now(), &host_name(), &suffix)?);
        }
        writer.as_mut().map_or(Ok(()), |writer| writer.write(&event))
    }

    fn flush(&self) -> Result<()> {
        self.writer.lock().as_mut().map_or(Ok(()), EventWriter::flush)
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

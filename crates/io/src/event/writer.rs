//! Writing of event files.

use super::{Event, EventWhat, wire};
use crate::fs::{FileSystems, path};
use crate::{Compression, RecordWriter};
use status::Result;

/// Writes events to a file whose name TensorBoard recognises.
pub struct EventWriter {
    records: RecordWriter,
    path: String,
}

/// The version of the event file format.
const VERSION: &str = "brain.Event:2";
/// The name by which readers recognise this writer.
const WRITER: &str = "tensorflow.core.util.events_writer";

impl EventWriter {
    /// Creates `events.out.tfevents.<seconds>.<host><suffix>` in a folder, which is created if it does not exist, and
    /// writes the version. `now` is in seconds since 1970.
    pub fn create(systems: &FileSystems, folder: &str, now: f64, host: &str, suffix: &str) -> Result<EventWriter> {
        let seconds = now.max(0.0) as u64;
        systems.create_dirs(folder)?;
        let path = path::join(folder, &format!("events.out.tfevents.{seconds:010}.{host}{suffix}"));
        let records = RecordWriter::create_on(systems, &path, Compression::None)?;
        let mut writer = EventWriter { records, path };
        let what = EventWhat::Version(VERSION.to_string());
        writer.write(&Event { wall_time: seconds as f64, step: 0, what, writer: Some(WRITER.to_string()) })?;
        writer.flush()?;
        Ok(writer)
    }

    /// The name of the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Adds an event.
    pub fn write(&mut self, event: &Event) -> Result<()> {
        self.records.write(&wire::encode_event(event)?)
    }

    /// Adds an event that is already encoded as an Event message.
    pub fn write_message(&mut self, message: &[u8]) -> Result<()> {
        self.records.write(message)
    }

    /// Makes everything written so far visible to readers.
    pub fn flush(&mut self) -> Result<()> {
        self.records.flush()
    }

    /// Completes the file.
    pub fn close(self) -> Result<()> {
        self.records.close()
    }
}

/// The host name of this machine, for the names of event files.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_string(),
        name => name.to_string(),
    }
}

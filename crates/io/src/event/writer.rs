//! Writes event files.

use super::{Event, EventWhat, wire};
use crate::fs::{FileSystems, path};
use crate::{Compression, RecordWriter};
use status::Result;

/// Writes events to a file whose name TensorBoard looks for.
pub struct EventWriter {
    records: RecordWriter,
    path: String,
}

/// The version of event files.
const VERSION: &str = "brain.Event:2";
/// Readers tell files of this writer from others by it.
const WRITER: &str = "tensorflow.core.util.events_writer";

impl EventWriter {
    /// Begins `events.out.tfevents.<seconds>.<host><suffix>` in a folder, which is made if it is missing. `now` is in
    /// seconds since 1970; the version of the file is there at once.
    pub fn create(systems: &FileSystems, folder: &str, now: f64, host: &str, suffix: &str) -> Result<EventWriter> {
        let seconds = now.max(0.0) as u64;
        systems.create_dirs(folder)?;
        let path = path::join(folder, &format!("events.out.tfevents.{seconds:010}.{host}{suffix}"));
        let records = RecordWriter::create(systems, &path, Compression::None)?;
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

    /// Adds an event that is an Event message already.
    pub fn write_message(&mut self, message: &[u8]) -> Result<()> {
        self.records.write(message)
    }

    /// Lets readers see what was written so far.
    pub fn flush(&mut self) -> Result<()> {
        self.records.flush()
    }

    /// Completes the file.
    pub fn close(self) -> Result<()> {
        self.records.close()
    }
}

/// The name of this machine, as it stands in names of event files.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_string(),
        name => name.to_string(),
    }
}

//! Reading of event files.

use super::{Event, wire};
use crate::fs::FileSystems;
use crate::{Compression, RecordReader};
use status::Result;

/// Iterates over the events of a file in order.
pub struct EventReader(RecordReader);

impl EventReader {
    /// The events of a file.
    pub fn open(systems: &FileSystems, path: &str) -> Result<EventReader> {
        EventReader::open_at(systems, path, 0)
    }

    /// The events of a file from an offset that another reader returned. This follows a file that grows.
    pub fn open_at(systems: &FileSystems, path: &str, offset: u64) -> Result<EventReader> {
        Ok(EventReader(RecordReader::open_at(systems, path, Compression::None, offset)?))
    }

    /// The offset of the next event.
    pub fn offset(&self) -> u64 {
        self.0.offset()
    }
}

impl Iterator for EventReader {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Result<Event>> {
        let record = self.0.next()?;
        Some(record.and_then(wire::decode_event))
    }
}

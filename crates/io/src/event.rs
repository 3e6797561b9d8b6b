//! Event files: what a program reported while it ran.

use crate::{RecordReader, wire};
use bytes::Bytes;
use status::Result;
use std::path::Path;
use tensor::Tensor;

/// One report.
#[derive(Clone, Debug)]
pub struct Event {
    /// When, in seconds since 1970.
    pub wall_time: f64,
    /// At which step.
    pub step: i64,
    /// What.
    pub what: EventWhat,
}

/// What an event reports.
#[derive(Clone, Debug)]
pub enum EventWhat {
    /// The version of the file, its first event.
    Version(String),
    /// A graph, as a GraphDef message.
    Graph(Bytes),
    /// A graph with what belongs to it, as a MetaGraphDef message.
    MetaGraph(Bytes),
    /// Values under tags.
    Summary(Vec<(String, SummaryValue)>),
    /// A line of a log.
    Log(String),
    /// A session began, ended or wrote a checkpoint.
    Session(String),
    /// What a step told about itself, under a tag.
    RunMetadata(String),
    /// Nothing that is known here.
    Other,
}

/// A value of a summary.
#[derive(Clone, Debug)]
pub enum SummaryValue {
    /// One number.
    Scalar(f32),
    /// A tensor.
    Tensor(Tensor),
    /// Counts by size: how many numbers, their least and largest.
    Histogram(f64, f64, f64),
    /// A picture: height and width.
    Image(i32, i32),
    /// A sound: frames.
    Audio(i64),
    /// Something else.
    Other,
}

/// Reads the events of a file in order.
pub struct EventReader(RecordReader);

impl EventReader {
    /// The events of the file at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<EventReader> {
        Ok(EventReader(RecordReader::open(path)?))
    }
}

impl Iterator for EventReader {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Result<Event>> {
        let record = self.0.next()?;
        Some(record.and_then(wire::event))
    }
}

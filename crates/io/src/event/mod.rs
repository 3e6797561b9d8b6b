//! Event files: what a program reported while it ran.

mod reader;
mod summary;
mod wire;
mod writer;

pub use reader::EventReader;
pub use summary::{Audio, Histogram, Image, SummaryData, SummaryMetadata, SummaryValue, read_summary, write_summary};
pub use writer::{EventWriter, host_name};

use bytes::Bytes;

/// One report.
#[derive(Clone, Debug, Default)]
pub struct Event {
    /// When, in seconds since 1970.
    pub wall_time: f64,
    /// At which step.
    pub step: i64,
    /// What.
    pub what: EventWhat,
    /// What wrote it, if it says so.
    pub writer: Option<String>,
}

/// What an event reports.
#[derive(Clone, Debug, Default)]
pub enum EventWhat {
    /// The version of the file, its first event.
    Version(String),
    /// A graph, as a GraphDef message.
    Graph(Bytes),
    /// A graph with what belongs to it, as a MetaGraphDef message.
    MetaGraph(Bytes),
    /// Values under tags.
    Summary(Vec<SummaryValue>),
    /// A line of a log: how grave it is, and the line.
    Log(i32, String),
    /// A session began, ended or wrote a checkpoint.
    Session(SessionLog),
    /// What a step told about itself: a tag, and a RunMetadata message.
    RunMetadata(String, Bytes),
    /// Nothing that is known here.
    #[default]
    Other,
}

/// What happened to a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionLog {
    /// What.
    pub status: SessionStatus,
    /// The checkpoint it wrote.
    pub checkpoint_path: String,
    /// More about it.
    pub message: String,
}

/// What can happen to a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionStatus {
    /// Not said.
    #[default]
    Unspecified,
    /// It began.
    Start,
    /// It ended.
    Stop,
    /// It wrote a checkpoint.
    Checkpoint,
}

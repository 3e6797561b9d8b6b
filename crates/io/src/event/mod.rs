//! Event files: what a program reported while it ran.

mod reader;
mod summary;
mod wire;
mod writer;

pub use reader::EventReader;
pub use summary::{Audio, Histogram, Image, SummaryData, SummaryMetadata, SummaryValue};
pub use summary::{is_summary, merge_summaries, read_summary, summary_event, tensor_summary};
pub use summary::{without_known_metadata, write_summary};
pub use writer::{EventWriter, host_name};

use bytes::Bytes;
use status::Result;

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

impl Event {
    /// The event as an Event message.
    pub fn to_message(&self) -> Result<Bytes> {
        Ok(wire::encode_event(self)?.into())
    }
}

/// Whether bytes are an Event message.
pub fn is_event(message: &Bytes) -> bool {
    wire::is_event(message.clone())
}

/// Whether bytes are a GraphDef message.
pub fn is_graph(message: &Bytes) -> bool {
    wire::is_graph(message.clone())
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

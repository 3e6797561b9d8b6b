//! Event files: summaries, graphs and log messages of a training, for TensorBoard.

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

/// One event.
#[derive(Clone, Debug, Default)]
pub struct Event {
    /// The time in seconds since 1970.
    pub wall_time: f64,
    /// The step.
    pub step: i64,
    /// The content.
    pub what: EventWhat,
    /// The program that wrote it, if it is recorded.
    pub writer: Option<String>,
}

impl Event {
    /// The event as an Event message.
    pub fn to_message(&self) -> Result<Bytes> {
        Ok(wire::encode_event(self)?.into())
    }
}

/// True if the bytes are an Event message.
pub fn is_event(message: &Bytes) -> bool {
    wire::is_event(message.clone())
}

/// True if the bytes are a GraphDef message.
pub fn is_graph(message: &Bytes) -> bool {
    wire::is_graph(message.clone())
}

/// The content of an event.
#[derive(Clone, Debug, Default)]
pub enum EventWhat {
    /// The version of the file format, which is the first event.
    Version(String),
    /// A graph, as a GraphDef message.
    Graph(Bytes),
    /// A meta graph, as a MetaGraphDef message.
    MetaGraph(Bytes),
    /// Summary values.
    Summary(Vec<SummaryValue>),
    /// A log message: its level and its text.
    Log(i32, String),
    /// A session started, ended or wrote a checkpoint.
    Session(SessionLog),
    /// The metadata of a step: a tag, and a RunMetadata message.
    RunMetadata(String, Bytes),
    /// Another kind of event.
    #[default]
    Other,
}

/// A change of a session's status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionLog {
    /// The new status.
    pub status: SessionStatus,
    /// The checkpoint that was written.
    pub checkpoint_path: String,
    /// A message with details.
    pub message: String,
}

/// The statuses of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionStatus {
    /// Not specified.
    #[default]
    Unspecified,
    /// The session started.
    Start,
    /// The session stopped.
    Stop,
    /// The session wrote a checkpoint.
    Checkpoint,
}

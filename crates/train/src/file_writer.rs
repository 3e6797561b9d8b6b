//! Event files that a program writes while it trains.

use checkpoint::meta_graph::export_collections;
use checkpoint::with_shapes;
use graph::{DeviceSpec, Graph, GraphDef, Node};
use io::event::{
    Event, EventWhat, SessionLog, SummaryData, SummaryValue, host_name, summary_event, without_known_metadata,
    write_summary,
};
use io::fs::path::to_str;
use io::saved_model::MetaGraph;
use io::{EventWriter, FileSystems};
use parking_lot::Mutex;
use session::RunMetadata;
use status::{Result, failed_precondition, internal, invalid};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};
use tensor::Bytes;

/// Writes events to a file in a folder, for TensorBoard and other readers.
///
/// A thread of its own writes the file, so a slow disk does not slow down training until the queue is full. The
/// thread ends with `close`, or when the writer is dropped.
pub struct FileWriter {
    path: String,
    thread: Mutex<Option<(SyncSender<Work>, JoinHandle<Result<()>>)>>,
    known: Mutex<Known>,
}

/// The tags that were written already.
#[derive(Default)]
struct Known {
    tags: HashSet<String>,
    run_tags: HashSet<String>,
}

/// Options of a [`FileWriter`].
#[derive(Clone, Debug)]
pub struct FileWriterOptions {
    /// The number of events that may wait for the thread.
    pub max_queue: usize,
    /// The time after which readers see what was written.
    pub flush_every: Duration,
    /// The suffix of the name of the file.
    pub suffix: String,
}

impl Default for FileWriterOptions {
    fn default() -> FileWriterOptions {
        FileWriterOptions { max_queue: 10, flush_every: Duration::from_secs(120), suffix: String::new() }
    }
}

/// A request to the thread.
enum Work {
    Write(Bytes),
    Flush(SyncSender<Result<()>>),
}

impl FileWriter {
    /// Creates an event file in a folder of the local file system.
    pub fn new(folder: impl AsRef<Path>) -> Result<FileWriter> {
        FileWriter::create(&FileSystems::local(), folder, FileWriterOptions::default())
    }

    /// Creates an event file in a folder of any file system.
    pub fn create(systems: &FileSystems, folder: impl AsRef<Path>, options: FileWriterOptions) -> Result<FileWriter> {
        let folder = to_str(folder.as_ref())?;
        let file = EventWriter::create(systems, folder, now(), &host_name(), &options.suffix)?;
        let path = file.path().to_string();
        let (sender, work) = sync_channel(options.max_queue.max(1));
        let name = "flowgrid-events".to_string();
        let thread = thread::Builder::new().name(name).spawn(move || write(file, &work, options.flush_every));
        let thread = thread.map_err(|error| internal!("no thread for writing events: {error}"))?;
        Ok(FileWriter { path, thread: Mutex::new(Some((sender, thread))), known: Mutex::default() })
    }

    /// The name of the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Adds a serialized Summary message, as summary ops give it. The metadata of a tag is written once.
    pub fn add_summary(&self, summary: impl Into<Bytes>, step: i64) -> Result<()> {
        let summary = without_known_metadata(summary.into(), &mut self.known.lock().tags)?;
        self.send(summary_event(now(), step, &summary))
    }

    /// Adds one number with a tag.
    pub fn add_scalar(&self, tag: &str, value: f64, step: i64) -> Result<()> {
        self.add_scalars([(tag.to_string(), value)], step)
    }

    /// Adds several numbers with their tags as one event.
    pub fn add_scalars(&self, scalars: impl IntoIterator<Item = (String, f64)>, step: i64) -> Result<()> {
        let value = |(tag, value): (String, f64)| {
            let data = SummaryData::Scalar(value as f32);
            SummaryValue { tag, data, ..SummaryValue::default() }
        };
        let values: Vec<SummaryValue> = scalars.into_iter().map(value).collect();
        self.add_summary(write_summary(&values)?, step)
    }

    /// Adds an event of any kind.
    pub fn add_event(&self, event: &Event) -> Result<()> {
        self.send(event.to_message()?)
    }

    /// Adds a graph: its nodes with their devices and shapes, and its collections.
    pub fn add_graph(&self, graph: &Graph) -> Result<()> {
        let bytes: Bytes = graph::wire::write_graph(&described(graph)?).into();
        self.add_what(0, EventWhat::Graph(bytes.clone()))?;
        let collections = export_collections(graph);
        self.add_meta_graph(&MetaGraph { graph: bytes, collections, ..MetaGraph::default() }, 0)
    }

    /// Adds a graph definition, for example of a partition.
    pub fn add_graph_def(&self, graph: &GraphDef, step: i64) -> Result<()> {
        self.add_what(step, EventWhat::Graph(graph::wire::write_graph(graph).into()))
    }

    /// Adds a meta graph.
    pub fn add_meta_graph(&self, graph: &MetaGraph, step: i64) -> Result<()> {
        self.add_what(step, EventWhat::MetaGraph(graph.to_bytes()?))
    }

    /// Adds the metadata of a step with a tag that was not used before.
    pub fn add_run_metadata(&self, metadata: &RunMetadata, tag: &str, step: i64) -> Result<()> {
        if !self.known.lock().run_tags.insert(tag.to_string()) {
            return Err(invalid!("The provided tag was already used for this event type"));
        }
        self.add_what(step, EventWhat::RunMetadata(tag.to_string(), session::run_metadata_message(metadata)))
    }

    /// Adds that a session started, stopped or wrote a checkpoint.
    pub fn add_session_log(&self, log: SessionLog, step: i64) -> Result<()> {
        self.add_what(step, EventWhat::Session(log))
    }

    fn add_what(&self, step: i64, what: EventWhat) -> Result<()> {
        self.add_event(&Event { wall_time: now(), step, what, writer: None })
    }

    /// Waits until readers can see everything that was added.
    pub fn flush(&self) -> Result<()> {
        let (tell, told) = sync_channel(1);
        self.ask(Work::Flush(tell))?;
        told.recv().unwrap_or_else(|_| self.close())
    }

    /// Completes the file; gives whether everything was written. A second call does nothing.
    pub fn close(&self) -> Result<()> {
        let Some((sender, thread)) = self.thread.lock().take() else { return Ok(()) };
        drop(sender);
        thread.join().unwrap_or_else(|_| Err(internal!("the thread that writes events panicked")))
    }

    fn send(&self, message: Bytes) -> Result<()> {
        self.ask(Work::Write(message))
    }

    fn ask(&self, work: Work) -> Result<()> {
        let sender = self.thread.lock().as_ref().map(|(sender, _)| sender.clone());
        let sender = sender.ok_or_else(|| failed_precondition!("Attempting to use a closed FileWriter"))?;
        // The thread ends early only because of an error, which `close` returns.
        sender.send(work).or_else(|_| self.close().and(Err(internal!("the thread that writes events ended"))))
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        // Errors are lost here; call `close` to see them.
        let _ = self.close();
    }
}

/// Writes events until all senders are gone.
fn write(mut file: EventWriter, work: &Receiver<Work>, flush_every: Duration) -> Result<()> {
    // The time of the first event that is not flushed yet.
    let mut unseen: Option<Instant> = None;
    loop {
        let wait = unseen.map_or(flush_every, |since| flush_every.saturating_sub(since.elapsed()));
        match work.recv_timeout(wait) {
            Ok(Work::Write(message)) => {
                file.write_message(&message)?;
                unseen.get_or_insert_with(Instant::now);
            }
            Ok(Work::Flush(tell)) => {
                let result = file.flush();
                let _ = tell.send(result.clone()); // the caller may have stopped waiting
                result?;
                unseen = None;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return file.close(),
        }
        if unseen.is_some_and(|since| since.elapsed() >= flush_every) {
            file.flush()?;
            unseen = None;
        }
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0.0, |elapsed| elapsed.as_micros() as f64 / 1.0e6)
}

/// The definition of a graph whose nodes have devices and output shapes, as viewers expect.
fn described(graph: &Graph) -> Result<GraphDef> {
    let (mut def, root) = (with_shapes(graph)?, graph.root());
    for described in &mut def.nodes {
        if let Some(node) = Node::find(&root, &described.name) {
            Arc::make_mut(described).device = place_of(&node);
        }
    }
    Ok(def)
}

/// The device of a node, as far as the graph determines it: a task without a device means its first CPU.
fn place_of(node: &Node) -> String {
    let device = node.device();
    match DeviceSpec::parse(&device) {
        Ok(spec) if spec.job.is_some() && spec.kind.is_none() => format!("{device}/device:CPU:0"),
        _ => device,
    }
}

//! The metadata of a traced step in Chrome's trace format, which Perfetto reads too.

use crate::RunMetadata;
use cluster::{NodeStats, TransferStats};
use graph::{AttrValue, DeviceSpec, builtin_ops};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// The trace of a step: a process for each task, a row for each device (and more rows where its ops overlap), an arrow
/// from each `_Send` to its `_Recv`; and for each device what it received from other tasks. Times begin with the step.
pub fn chrome_trace(metadata: &RunMetadata) -> String {
    let mut received: BTreeMap<&str, Vec<NodeStats>> = BTreeMap::new();
    for transfer in &metadata.transfers {
        received.entry(&transfer.recv_device).or_default().push(as_node(transfer));
    }
    let nodes = metadata.stats.iter().flat_map(|(_, nodes)| nodes).chain(received.values().flatten());
    let origin = nodes.map(|node| node.start).min().unwrap_or(0);
    let mut picture = Picture { origin, edges: edges(metadata), ..Picture::default() };
    for (device, nodes) in &metadata.stats {
        picture.add_rows(device, "", nodes);
    }
    for (device, nodes) in &received {
        picture.add_rows(device, " receives", nodes);
    }
    picture.add_transfers();
    json!({ "displayTimeUnit": "ms", "traceEvents": picture.events }).to_string()
}

#[derive(Default)]
struct Picture {
    /// When the step began, in nanoseconds.
    origin: u64,
    events: Vec<Value>,
    /// Numbers of tasks, and how many rows each has.
    tasks: BTreeMap<String, (usize, usize)>,
    /// Tensors that nodes send or receive, where graphs tell.
    edges: HashMap<String, String>,
    sends: BTreeMap<String, Vec<Slice>>,
    recvs: BTreeMap<String, Vec<Slice>>,
}

/// Where and when a node ran.
#[derive(Clone, Copy)]
struct Slice {
    process: usize,
    row: usize,
    start: u64,
    end: u64,
}

impl Picture {
    /// Rows for what happened on a device; `what` is added to their names.
    fn add_rows(&mut self, device: &str, what: &str, nodes: &[NodeStats]) {
        let (task, own) = split(device);
        let own = own + what;
        let process = self.process(&task);
        let mut nodes: Vec<&NodeStats> = nodes.iter().collect();
        nodes.sort_by_key(|node| (node.start, node.end));
        // For each row of this device, its number and when its last op ended.
        let mut rows: Vec<(usize, u64)> = vec![(self.row(&task, process, &own), 0)];
        for node in nodes {
            let free = rows.iter().position(|&(_, end)| end <= node.start).unwrap_or_else(|| {
                let name = format!("{own} ({})", rows.len() + 1);
                rows.push((self.row(&task, process, &name), 0));
                rows.len() - 1
            });
            rows[free].1 = node.end.max(node.start + 1);
            let slice = Slice { process, row: rows[free].0, start: node.start, end: node.end.max(node.start) };
            self.add_node(node, slice);
        }
    }

    /// The number of a task; it is announced when it is new.
    fn process(&mut self, task: &str) -> usize {
        let next = self.tasks.len();
        let process = self.tasks.entry(task.to_string()).or_insert((next, 0)).0;
        if process == next {
            self.events.push(json!({
                "ph": "M", "name": "process_name", "pid": process, "args": { "name": task },
            }));
        }
        process
    }

    /// A new row of a task.
    fn row(&mut self, task: &str, process: usize, name: &str) -> usize {
        let row = self.tasks.get_mut(task).map_or(0, |(_, rows)| {
            *rows += 1;
            *rows - 1
        });
        self.events.push(json!({
            "ph": "M", "name": "thread_name", "pid": process, "tid": row, "args": { "name": name },
        }));
        row
    }

    fn add_node(&mut self, node: &NodeStats, slice: Slice) {
        let outputs: Vec<String> = node.outputs.iter().map(|(dtype, shape)| format!("{dtype}{shape}")).collect();
        let waited = node.start.saturating_sub(node.scheduled) as f64 / 1000.0;
        self.events.push(json!({
            "ph": "X", "cat": "Op", "name": &*node.op, "pid": slice.process, "tid": slice.row,
            "ts": self.micros(slice.start), "dur": (slice.end - slice.start) as f64 / 1000.0,
            "args": { "name": &*node.name, "op": &*node.op, "outputs": outputs, "waited_us": waited, "thread": node.thread },
        }));
        let edge = self.edges.get(&*node.name).cloned().unwrap_or_else(|| node.name.to_string());
        match &*node.op {
            builtin_ops::SEND | builtin_ops::HOST_SEND => self.sends.entry(edge).or_default().push(slice),
            builtin_ops::RECV | builtin_ops::HOST_RECV => self.recvs.entry(edge).or_default().push(slice),
            _ => {}
        }
    }

    /// Arrows from sends to recvs of the same edge, in the order they ran: an edge inside a loop has several.
    fn add_transfers(&mut self) {
        let mut number = 0;
        for (edge, sends) in std::mem::take(&mut self.sends) {
            for (send, recv) in sends.iter().zip(self.recvs.get(&edge).into_iter().flatten()) {
                // The arrow must end inside what it points to, and not before it began.
                let arrival = send.end.clamp(recv.start, recv.end).max(send.start);
                let begin = self.arrow("s", &edge, number, send, send.start);
                let mut end = self.arrow("f", &edge, number, recv, arrival);
                end["bp"] = json!("e");
                self.events.extend([begin, end]);
                number += 1;
            }
        }
    }

    fn arrow(&self, phase: &str, edge: &str, number: usize, slice: &Slice, time: u64) -> Value {
        json!({
            "ph": phase, "cat": "transfer", "name": edge, "id": number,
            "pid": slice.process, "tid": slice.row, "ts": self.micros(time),
        })
    }

    fn micros(&self, time: u64) -> f64 {
        time.saturating_sub(self.origin) as f64 / 1000.0
    }
}

/// A tensor that came from another task, as the work of the device that received it.
fn as_node(transfer: &TransferStats) -> NodeStats {
    NodeStats {
        name: format!("{} from {}", transfer.tensor, transfer.send_device).into(),
        op: "RecvTensor".into(),
        device: transfer.recv_device.as_str().into(),
        scheduled: transfer.start.saturating_mul(1000),
        start: transfer.start.saturating_mul(1000),
        end: transfer.end.saturating_mul(1000),
        outputs: Vec::new(),
        thread: 0,
    }
}

/// The task of a device, and the device's name on it.
fn split(device: &str) -> (String, String) {
    match DeviceSpec::parse(device) {
        Ok(DeviceSpec { job: Some(job), replica, task, kind, id }) => {
            let task = format!("/job:{job}/replica:{}/task:{}", replica.unwrap_or(0), task.unwrap_or(0));
            (task, format!("{}:{}", kind.as_deref().unwrap_or("CPU"), id.unwrap_or(0)))
        }
        _ => (device.to_string(), device.to_string()),
    }
}

/// Which tensor each `_Send` and `_Recv` moves, by its name, where the graphs of the step are there. Otherwise the two
/// ends of a transfer are known by their common name.
fn edges(metadata: &RunMetadata) -> HashMap<String, String> {
    let nodes = metadata.partition_graphs.iter().flat_map(|graph| &graph.nodes);
    let edge = |node: &std::sync::Arc<graph::NodeDef>| match node.attrs.get("tensor_name") {
        Some(AttrValue::String(name)) => Some((node.name.clone(), String::from_utf8_lossy(name).into_owned())),
        _ => None,
    };
    nodes.filter_map(edge).collect()
}

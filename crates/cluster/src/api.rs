//! The calls between tasks: requests, answers, and the trait through which a task calls the worker of another one.

use crate::collective::groups::Join;
pub use crate::collective::instances::CompleteInstance;
use crate::{ClusterSpec, Task};
use exec::NodeStats;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use graph::GraphDef;
use op::{OpenedTensor, Received};
use status::{Error, Result, unimplemented_op};
use std::pin::Pin;
use tensor::{Bytes, Tensor};

/// The answer of a call. Dropping it cancels the call.
pub type Future<'a, T> = Pin<Box<dyn std::future::Future<Output = Result<T>> + Send + 'a>>;

/// A device as its task describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceAttributes {
    /// Full name.
    pub name: String,
    /// `CPU`.
    pub kind: String,
    /// Bytes it may use.
    pub memory_limit: i64,
    /// A random number, which changes when the task restarts.
    pub incarnation: u64,
}

/// Creates a session on a worker.
#[derive(Clone, Debug, Default)]
pub struct CreateWorkerSession {
    /// The session.
    pub session: String,
    /// The session has resources of its own.
    pub isolate_state: bool,
    /// The name of the master's task.
    pub master_task: String,
    /// The master's incarnation; another one means that it has restarted.
    pub master_incarnation: i64,
    /// The cluster, if the session brings its own, and the name of this task in it.
    pub cluster: Option<(ClusterSpec, Task)>,
}

/// A graph to be run many times.
#[derive(Clone, Debug, Default)]
pub struct RegisterGraph {
    /// The session; empty for the server's own.
    pub session: String,
    /// The graph, every node on a device of this task.
    pub graph: GraphDef,
    /// Run the ops of the graph as they are, without rewriting them.
    pub no_rewriting: bool,
    /// The key of a graph with collective operations; otherwise zero.
    pub collective_graph_key: i64,
    /// The task that leads groups of collective operations, if the session's configuration names one.
    pub collective_group_leader: String,
}

/// One run of a registered graph.
#[derive(Clone, Debug, Default)]
pub struct RunGraph {
    /// The session; empty for the server's own.
    pub session: String,
    /// The graph.
    pub graph: String,
    /// The id of the step.
    pub step_id: u64,
    /// The values that the master feeds, by key.
    pub send: Vec<(String, Tensor)>,
    /// The keys of the values that the master fetches.
    pub recv: Vec<String>,
    /// Record when every node ran.
    pub trace: bool,
    /// One of several calls for the same step.
    pub partial: bool,
    /// The last of these calls.
    pub last_partial: bool,
    /// Identifies the request, if it is not zero: a second one with the same id is refused.
    pub request_id: i64,
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct RunGraphAnswer {
    /// The values that the master fetches, by key.
    pub recv: Vec<(String, Tensor)>,
    /// When nodes ran, by device, if the run was traced.
    pub stats: StepStats,
}

/// When nodes ran, by device.
pub type StepStats = Vec<(String, Vec<NodeStats>)>;

/// A request for a tensor of another task.
#[derive(Clone, Debug, Default)]
pub struct RecvTensor {
    /// The id of the step.
    pub step_id: u64,
    /// The tensor's key.
    pub key: String,
    /// Identifies the request, if it is not zero: a second one with the same id is refused.
    pub request_id: i64,
}

/// A request for a buffer of a collective op.
#[derive(Clone, Debug, Default)]
pub struct RecvBuf {
    /// The id of the step.
    pub step_id: u64,
    /// The buffer's key.
    pub key: String,
    /// The device it is on.
    pub device: String,
    /// The incarnation of that device.
    pub incarnation: u64,
    /// The device that receives it.
    pub receiver: String,
    /// The size that the caller expects; for messages.
    pub num_bytes: i64,
    /// Identifies the request, if it is not zero: a second one with the same id is refused.
    pub request_id: i64,
}

/// A device that joins a group for collective operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompleteGroup {
    /// The group.
    pub group_key: i32,
    /// The number of its members.
    pub group_size: i32,
    /// The type of all its devices.
    pub device_type: String,
    /// The device.
    pub device: DeviceAttributes,
}

/// A complete group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompletedGroup {
    /// The group.
    pub group_key: i32,
    /// The type of all its devices.
    pub device_type: String,
    /// The number of its tasks.
    pub num_tasks: i32,
    /// Its members.
    pub devices: Vec<DeviceAttributes>,
}

impl From<Join> for CompleteGroup {
    fn from(join: Join) -> CompleteGroup {
        let Join { key, size, kind, device, .. } = join;
        CompleteGroup { group_key: key, group_size: size as i32, device_type: kind, device }
    }
}

/// What a task accepts besides TensorFlow's calls, as it said in its last answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Several requests for tensors in one call (`recv_tensors`).
    pub recv_batches: bool,
    /// The ends of steps together with a run (`run_graph_after`).
    pub step_ends: bool,
}

/// Called with the index of a request and its answer.
pub type Deliver = Box<dyn FnMut(usize, Result<Received>) + Send>;

/// Controls the log of the tensors that a task receives from others, and reads it.
#[derive(Clone, Debug, Default)]
pub struct Logging {
    /// Enable the log.
    pub enable: bool,
    /// Disable the log.
    pub disable: bool,
    /// Clear the log.
    pub clear: bool,
    /// The steps to read; they are removed from the log.
    pub steps: Vec<u64>,
}

/// A tensor that was received from another task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferStats {
    /// The edge of the tensor.
    pub tensor: String,
    /// The device that sent it.
    pub send_device: String,
    /// The device that received it.
    pub recv_device: String,
    /// Its size.
    pub bytes: u64,
    /// When it was requested, in microseconds since 1970.
    pub start: u64,
    /// When it had arrived, likewise.
    pub end: u64,
}

/// A task as masters and other workers call it, in this process or another one.
pub trait WorkerClient: Send + Sync {
    /// Its devices.
    fn get_status(&self) -> Future<'_, Vec<DeviceAttributes>>;
    /// Creates a session.
    fn create_session(&self, request: CreateWorkerSession) -> Future<'_, ()>;
    /// Ends a session.
    fn delete_session(&self, session: String) -> Future<'_, ()>;
    /// Prepares a graph to be run; returns its handle.
    fn register_graph(&self, request: RegisterGraph) -> Future<'_, String>;
    /// Forgets a graph; its running steps continue.
    fn deregister_graph(&self, session: String, graph: String) -> Future<'_, ()>;
    /// Runs a graph.
    fn run_graph(&self, request: RunGraph) -> Future<'_, RunGraphAnswer>;
    /// Forgets a step.
    fn cleanup_graph(&self, step_id: u64) -> Future<'_, ()>;
    /// What the task accepts in one call instead of several.
    fn features(&self) -> Features {
        Features::default()
    }
    /// Forgets the steps that have ended, then runs a graph. The outer result is an error if the task did not answer.
    fn run_graph_after<'a>(&'a self, ended: &'a [u64], request: RunGraph) -> Future<'a, Result<RunGraphAnswer>> {
        Box::pin(async move {
            self.cleanup_graphs(ended).await?;
            Ok(self.run_graph(request).await)
        })
    }
    /// Forgets several steps.
    fn cleanup_graphs<'a>(&'a self, steps: &'a [u64]) -> Future<'a, ()> {
        Box::pin(async move {
            for &step_id in steps {
                self.cleanup_graph(step_id).await?;
            }
            Ok(())
        })
    }
    /// Waits for several tensors; delivers each as soon as it is there.
    fn recv_tensors(&self, requests: Vec<RecvTensor>, mut deliver: Deliver) -> Future<'_, ()> {
        Box::pin(async move {
            let receive = |(index, request)| async move { (index, self.recv_tensor(request).await) };
            let mut answers: FuturesUnordered<_> = requests.into_iter().enumerate().map(receive).collect();
            while let Some((index, received)) = answers.next().await {
                deliver(index, received);
            }
            Ok(())
        })
    }
    /// Forgets containers; the default one if none is named.
    fn cleanup_all(&self, containers: Vec<String>) -> Future<'_, ()>;
    /// Waits for a tensor.
    fn recv_tensor(&self, request: RecvTensor) -> Future<'_, Received>;
    /// Waits for a tensor that is to be read in chunks. A large one stays with its task until it is read, if the task
    /// supports that.
    fn open_tensor(&self, request: RecvTensor) -> Future<'_, OpenedTensor> {
        Box::pin(async move { self.recv_tensor(request).await.map(OpenedTensor::Whole) })
    }
    /// Waits for a buffer of a collective op.
    fn recv_buf(&self, _: RecvBuf) -> Future<'_, Bytes> {
        Box::pin(async { Err(unimplemented_op!("this task does not take part in collective operations")) })
    }
    /// Joins a group that this task leads; answers when the group is complete.
    fn complete_group(&self, _: CompleteGroup) -> Future<'_, CompletedGroup> {
        Box::pin(async { Err(no_leader()) })
    }
    /// Asks for an operation of a group that this task leads; gives the rank of its source, or -1.
    fn complete_instance(&self, _: CompleteInstance) -> Future<'_, i32> {
        Box::pin(async { Err(no_leader()) })
    }
    /// The numbers of the next steps of graphs with collective operations, by the keys of the graphs.
    fn get_step_sequence(&self, _: Vec<i64>) -> Future<'_, Vec<(i64, u64)>> {
        Box::pin(async { Err(no_leader()) })
    }
    /// Controls the log of transfers, and reads it by step.
    fn logging(&self, _: Logging) -> Future<'_, Vec<(u64, Vec<TransferStats>)>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

fn no_leader() -> Error {
    unimplemented_op!("this task leads no collective group")
}

/// An error of another task, with the task named once.
pub(crate) fn from_task(error: Error, task: &str) -> Error {
    if error.message.starts_with("From /job:") {
        return error;
    }
    Error { message: format!("From {task}:\n{}", error.message), ..error }
}

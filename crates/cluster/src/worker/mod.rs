//! A worker: the devices, sessions, registered graphs and running steps of one task.

pub(crate) mod buffers;
mod counters;
mod members;
mod recv_batch;
mod remote;
mod rendezvous;
mod serve;
mod session;
mod step;
mod step_ends;
mod steps;
mod tensor_stream;
mod transfers;

use crate::api::{
    CreateWorkerSession, DeviceAttributes, Future, Logging, Peers, RecvBuf, RegisterGraph, RunGraph, RunGraphAnswer,
    TransferStats, WorkerClient, aside,
};
use crate::{ClusterSpec, RecvTensor, RequestDedup, Task, ids};
use counters::Counters;
use exec::Threads;
use math::Pool;
use op::{Given, Keeper, OpenedTensor, Received, Registry, Resources, SyncPolicy};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use session::WorkerSession;
use status::{Result, aborted, unavailable};
use std::sync::Arc;
use steps::Steps;
use tensor::Bytes;
use transfers::Transfers;

pub use counters::TaskCounts;
pub use remote::RemoteWorker;

/// The options of a worker.
pub struct WorkerOptions {
    /// The task that it is.
    pub task: Task,
    /// The cluster it is in.
    pub cluster: ClusterSpec,
    /// The op table.
    pub registry: Arc<Registry>,
    /// The number of its CPU devices.
    pub devices: usize,
    /// The number of threads that run expensive ops.
    pub inter_op_threads: usize,
    /// The number of threads over which one op splits its loops.
    pub intra_op_threads: usize,
    /// How to reach other tasks.
    pub peers: Arc<dyn Peers>,
    /// Rewrites calls of SymbolicGradient.
    pub differentiate: Option<Arc<exec::Differentiate>>,
    /// How this task counts the gradients of synchronous training.
    pub sync_policy: SyncPolicy,
    /// What the kernels of all devices can use, such as file systems.
    pub given: Given,
}

/// One task.
pub struct Worker {
    pub(crate) task: Task,
    pub(crate) name: String,
    pub(crate) cluster: RwLock<ClusterSpec>,
    pub(crate) devices: Vec<LocalDevice>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) threads: Arc<Threads>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) peers: Arc<dyn Peers>,
    pub(crate) differentiate: Option<Arc<exec::Differentiate>>,
    pub(crate) sync_policy: SyncPolicy,
    pub(crate) given: Given,
    sessions: Mutex<FxHashMap<String, Arc<WorkerSession>>>,
    steps: Steps,
    pub(crate) transfers: Transfers,
    pub(crate) counters: Counters,
    requests: RequestDedup,
    links: Mutex<FxHashMap<(Task, String), Arc<dyn WorkerClient>>>,
}

/// A device of this task.
#[derive(Clone)]
pub(crate) struct LocalDevice {
    pub name: String,
    pub incarnation: u64,
    pub resources: Arc<Resources>,
}

impl Worker {
    /// A task with new devices.
    pub fn new(options: WorkerOptions) -> Arc<Worker> {
        let name = options.task.to_string();
        let counters = Counters::default();
        let device = |id| LocalDevice {
            name: format!("{name}/device:CPU:{id}"),
            incarnation: ids::nonzero(),
            resources: fresh_resources(&options.task, options.given.clone(), &counters),
        };
        Arc::new(Worker {
            devices: (0..options.devices.max(1)).map(device).collect(),
            name,
            task: options.task,
            cluster: RwLock::new(options.cluster),
            registry: options.registry,
            threads: Arc::new(Threads::new(options.inter_op_threads)),
            pool: Arc::new(Pool::new(options.intra_op_threads)),
            peers: options.peers,
            differentiate: options.differentiate,
            sync_policy: options.sync_policy,
            given: options.given,
            sessions: Mutex::default(),
            steps: Steps::default(),
            transfers: Transfers::default(),
            counters,
            requests: RequestDedup::default(),
            links: Mutex::default(),
        })
    }

    /// Makes the variables of the devices durable with one keeper each, and restores what the keepers hold. Must be called
    /// before the first step.
    pub fn keep_variables(&self, keepers: Vec<Arc<dyn Keeper>>) -> Result<()> {
        self.devices.iter().zip(keepers).try_for_each(|(device, keeper)| device.resources.keep_variables(keeper))
    }

    /// The number of its CPU devices.
    pub fn device_count(&self) -> usize {
        self.devices.len()
    }

    /// Its counters.
    pub fn counts(&self) -> TaskCounts {
        self.counters.read()
    }

    /// The resources of its devices, in order; without those of sessions with isolated state.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resources>> {
        self.devices.iter().map(|device| &device.resources)
    }

    /// An error if changes of durable variables cannot be stored.
    pub(crate) fn check_keeping(&self) -> Result<()> {
        self.devices.iter().find_map(|device| device.resources.keeping_failed()).map_or(Ok(()), Err)
    }

    /// The task that this worker is.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The cluster it is in.
    pub fn cluster(&self) -> ClusterSpec {
        self.cluster.read().clone()
    }

    /// Sets the worker's own address, after it has been given a free port.
    pub fn set_own_address(&self, address: &str) {
        self.cluster.write().set_address(&self.task, address);
    }

    /// Its devices.
    pub fn device_attributes(&self) -> Vec<DeviceAttributes> {
        self.devices
            .iter()
            .map(|device| DeviceAttributes {
                name: device.name.clone(),
                kind: "CPU".to_string(),
                memory_limit: 256 << 20,
                incarnation: device.incarnation,
            })
            .collect()
    }

    /// Another task of a cluster.
    pub(crate) fn link(&self, cluster: &ClusterSpec, task: &Task) -> Result<Arc<dyn WorkerClient>> {
        let address = cluster.address(task).ok_or_else(|| {
            let known: Vec<String> = cluster.tasks().map(|task| task.to_string()).collect();
            unavailable!("{task} is not in the cluster of {}; its tasks are {}", self.name, known.join(", "))
        })?;
        let key = (task.clone(), address.to_string());
        if let Some(link) = self.links.lock().get(&key) {
            return Ok(link.clone());
        }
        let link = RemoteWorker::new(self.peers.connect(task, address)?, self.peers.clone());
        Ok(self.links.lock().entry(key).or_insert_with(|| Arc::new(link)).clone())
    }

    fn session(self: &Arc<Self>, handle: &str) -> Result<Arc<WorkerSession>> {
        let mut sessions = self.sessions.lock();
        if handle.is_empty() {
            return Ok(sessions.entry(String::new()).or_insert_with(|| WorkerSession::shared(self)).clone());
        }
        sessions.get(handle).cloned().ok_or_else(|| {
            aborted!("Session handle is not found: {handle}. Possibly this worker (\"{}\") just restarted.", self.name)
        })
    }

    fn open_session(self: &Arc<Self>, request: CreateWorkerSession) {
        let session = WorkerSession::new(self, &request);
        members::watch(self, &session);
        let ended: Vec<(String, Arc<WorkerSession>)> = {
            let mut sessions = self.sessions.lock();
            // A master that has restarted never deletes its old sessions.
            let is_over = |old: &WorkerSession| {
                !old.master_task.is_empty()
                    && old.master_task == request.master_task
                    && old.master_incarnation != request.master_incarnation
            };
            let over: Vec<String> =
                sessions.iter().filter(|(_, old)| is_over(old)).map(|(handle, _)| handle.clone()).collect();
            let ended = over.iter().filter_map(|handle| sessions.remove_entry(handle)).collect();
            sessions.insert(request.session.clone(), session);
            ended
        };
        ended.iter().for_each(|(handle, session)| self.end_session(handle, session));
    }

    fn close_session(&self, handle: &str) {
        let session = self.sessions.lock().remove(handle);
        if let Some(session) = session {
            self.end_session(handle, &session);
        }
    }

    fn end_session(&self, handle: &str, session: &WorkerSession) {
        session.end();
        self.steps.forget_partial(handle);
    }

    /// Forgets containers on all devices; the default one if none is named.
    pub fn clear_containers(&self, containers: &[String]) {
        for device in &self.devices {
            match containers.is_empty() {
                true => device.resources.clear(""),
                false => containers.iter().for_each(|container| device.resources.clear(container)),
            }
        }
    }

    /// Ends all running steps with this error.
    pub fn abort_steps(&self, error: &status::Error) {
        self.steps.abort_all(error);
    }
}

/// The resources of a new device.
fn fresh_resources(task: &Task, given: Given, counters: &Counters) -> Arc<Resources> {
    let resources = Resources::with_given(&task.job, given);
    if let Err(error) = counters.register(&resources) {
        tracing::warn!("the counters of {task} are not available: {error}");
    }
    Arc::new(resources)
}

/// A worker as its own process calls it.
pub(crate) struct LocalWorker(pub Arc<Worker>);

impl WorkerClient for LocalWorker {
    fn get_status(&self) -> Future<'_, Vec<DeviceAttributes>> {
        Box::pin(async { Ok(self.0.device_attributes()) })
    }

    fn create_session(&self, request: CreateWorkerSession) -> Future<'_, ()> {
        Box::pin(async {
            self.0.open_session(request);
            Ok(())
        })
    }

    fn delete_session(&self, session: String) -> Future<'_, ()> {
        Box::pin(async move {
            self.0.close_session(&session);
            Ok(())
        })
    }

    fn register_graph(&self, request: RegisterGraph) -> Future<'_, String> {
        Box::pin(async move {
            let session = self.0.session(&request.session)?;
            aside(&*self.0.peers, || session.register(&request))
        })
    }

    fn deregister_graph(&self, session: String, graph: String) -> Future<'_, ()> {
        Box::pin(async move { self.0.session(&session)?.deregister(&graph) })
    }

    fn run_graph(&self, request: RunGraph) -> Future<'_, RunGraphAnswer> {
        Box::pin(async move {
            let RunGraph { session, graph, step_id, request_id, .. } = &request;
            self.0.requests.check(*request_id, "RunGraph (Worker)", || {
                format!(
                    "graph_handle: \"{graph}\" step_id: {step_id} session_handle: \"{session}\" request_id: {request_id}"
                )
            })?;
            step::run_graph(self.0.clone(), request).await
        })
    }

    fn cleanup_graph(&self, step_id: u64) -> Future<'_, ()> {
        Box::pin(async move {
            self.0.steps.forget(step_id);
            Ok(())
        })
    }

    fn cleanup_all(&self, containers: Vec<String>) -> Future<'_, ()> {
        Box::pin(async move {
            self.0.clear_containers(&containers);
            Ok(())
        })
    }

    fn recv_tensor(&self, request: RecvTensor) -> Future<'_, Received> {
        Box::pin(async move {
            self.0.check_recv_tensor(&request)?;
            serve::recv_tensor(self.0.clone(), request).await
        })
    }

    fn open_tensor(&self, request: RecvTensor) -> Future<'_, OpenedTensor> {
        Box::pin(async move {
            self.0.check_recv_tensor(&request)?;
            serve::open_tensor(self.0.clone(), request).await
        })
    }

    fn recv_buf(&self, request: RecvBuf) -> Future<'_, Bytes> {
        Box::pin(async move {
            let RecvBuf { step_id, key, num_bytes, request_id, .. } = &request;
            self.0.requests.check(*request_id, "RecvBuf (GrpcWorker)", || {
                format!(
                    "step_id: {step_id} buf_rendezvous_key: \"{key}\" num_bytes: {num_bytes} request_id: {request_id}"
                )
            })?;
            buffers::recv_buf(self.0.clone(), request).await
        })
    }

    fn logging(&self, request: Logging) -> Future<'_, Vec<(u64, Vec<TransferStats>)>> {
        Box::pin(async move { Ok(self.0.transfers.handle(request)) })
    }
}

impl Worker {
    /// Refuses a request that was received before.
    fn check_recv_tensor(&self, request: &RecvTensor) -> Result<()> {
        let RecvTensor { step_id, key, request_id } = request;
        self.requests.check(*request_id, "RecvTensor (GrpcWorker)", || {
            format!("step_id: {step_id} rendezvous_key: \"{key}\" request_id: {request_id}")
        })
    }

    /// This worker as its own process calls it.
    pub fn client(self: &Arc<Self>) -> Arc<dyn WorkerClient> {
        Arc::new(LocalWorker(self.clone()))
    }
}

/// For a task that is alone.
pub struct NoPeers;

impl Peers for NoPeers {
    fn connect(&self, task: &Task, _: &str) -> Result<Arc<dyn WorkerClient>> {
        Err(unavailable!("{task} cannot be reached from a local session"))
    }

    fn spawn(&self, work: std::pin::Pin<Box<dyn std::future::Future<Output = ()> + Send>>) {
        use futures_util::FutureExt;
        // Nothing in a local session waits for anybody, so the work is done at the first poll.
        let _ = work.now_or_never();
    }

    fn sleep(&self, _: std::time::Duration) -> std::pin::Pin<Box<dyn std::future::Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }

    fn yield_now(&self) -> std::pin::Pin<Box<dyn std::future::Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}

//! A worker: the devices, sessions, registered graphs and running steps of one task.

pub(crate) mod buffers;
mod collectives;
mod counters;
mod members;
mod recv_batch;
mod remote;
mod remote_function;
mod rendezvous;
mod serve;
mod session;
mod step;
mod step_ends;
pub(crate) mod steps;
mod tensor_stream;
mod transfers;

use crate::api::{
    CompleteGroup, CompleteInstance, CompletedGroup, CreateWorkerSession, DeviceAttributes, Future, Logging, RecvBuf,
    RegisterGraph, RunGraph, RunGraphAnswer, TransferStats, WorkerClient,
};
use crate::collective::Collective;
use crate::runtime::run_long;
use crate::{ClusterSpec, RecvTensor, RequestDedup, Runtime, Task, Transport, ids};
use counters::Counters;
use exec::Threads;
use math::Pool;
use membership::SyncPolicy;
use op::{CPU, DeviceTypes, Extensions, OpenedTensor, Received, Registry, Resources};
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

/// The memory that TensorFlow reports for a CPU.
const CPU_MEMORY_LIMIT: i64 = 256 << 20;

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
    pub transport: Arc<dyn Transport>,
    /// What runs background work.
    pub runtime: Arc<dyn Runtime>,
    /// Rewrites calls of SymbolicGradient.
    pub differentiate: Option<Arc<exec::Differentiate>>,
    /// How this task counts the gradients of synchronous training.
    pub sync_policy: SyncPolicy,
    /// Values for the kernels of all devices, such as file systems.
    pub extensions: Extensions,
}

/// One task.
pub struct Worker {
    pub(crate) task: Task,
    pub(crate) name: String,
    pub(crate) cluster: RwLock<ClusterSpec>,
    pub(crate) devices: Vec<LocalDevice>,
    /// The registered types of devices beside the CPU.
    pub(crate) device_types: Arc<DeviceTypes>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) threads: Arc<Threads>,
    pub(crate) pool: Arc<Pool>,
    transport: Arc<dyn Transport>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) differentiate: Option<Arc<exec::Differentiate>>,
    pub(crate) sync_policy: SyncPolicy,
    pub(crate) extensions: Extensions,
    sessions: Mutex<FxHashMap<String, Arc<WorkerSession>>>,
    pub(crate) steps: Steps,
    pub(crate) transfers: Transfers,
    pub(crate) counters: Counters,
    requests: RequestDedup,
    pub(crate) collective: Collective,
    links: Mutex<FxHashMap<(Task, String), Arc<dyn WorkerClient>>>,
}

/// A device of this task.
#[derive(Clone)]
pub(crate) struct LocalDevice {
    pub name: String,
    /// `CPU`, or the name of a registered type.
    pub kind: String,
    /// Its number among the devices of its type.
    pub id: usize,
    pub memory_limit: i64,
    pub incarnation: u64,
    pub resources: Arc<Resources>,
}

impl Worker {
    /// A task with new devices.
    pub fn new(options: WorkerOptions) -> Arc<Worker> {
        let name = options.task.to_string();
        let counters = Counters::default();
        let device_types = options.extensions.get_shared::<DeviceTypes>().unwrap_or_default();
        let device = |(kind, id, memory_limit): (&str, usize, i64)| LocalDevice {
            name: format!("{name}/device:{kind}:{id}"),
            kind: kind.to_string(),
            id,
            memory_limit,
            incarnation: ids::nonzero(),
            resources: fresh_resources(&options.task, options.extensions.clone(), &counters),
        };
        // The first device is a CPU: feeds arrive there.
        let cpus = (0..options.devices.max(1)).map(|id| (CPU, id, CPU_MEMORY_LIMIT));
        let others = device_types.iter().flat_map(|own| (0..own.devices()).map(|id| (own.name(), id, own.memory())));
        let devices = cpus.chain(others).map(device).collect();
        Arc::new(Worker {
            devices,
            name,
            device_types,
            task: options.task,
            cluster: RwLock::new(options.cluster),
            registry: options.registry,
            threads: Arc::new(Threads::new(options.inter_op_threads)),
            pool: Arc::new(Pool::new(options.intra_op_threads)),
            transport: options.transport,
            runtime: options.runtime,
            differentiate: options.differentiate,
            sync_policy: options.sync_policy,
            extensions: options.extensions,
            sessions: Mutex::default(),
            steps: Steps::default(),
            transfers: Transfers::default(),
            counters,
            requests: RequestDedup::default(),
            collective: Collective::default(),
            links: Mutex::default(),
        })
    }

    /// The name of each device within the task, in lower case: `cpu-0`.
    pub fn device_labels(&self) -> impl Iterator<Item = String> {
        self.devices.iter().map(|device| format!("{}-{}", device.kind.to_lowercase(), device.id))
    }

    /// Its counters.
    pub fn counts(&self) -> TaskCounts {
        self.counters.read()
    }

    /// The resources of its devices, in order; without those of sessions with isolated state.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resources>> {
        self.devices.iter().map(|device| &device.resources)
    }

    /// An error if an observer of variables has failed: steps must not go on when, say, a journal cannot be written.
    pub(crate) fn check_observers(&self) -> Result<()> {
        self.devices.iter().find_map(|device| device.resources.observer_failure()).map_or(Ok(()), Err)
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

    /// Names the task that leads groups of collective operations, unless the name is empty.
    pub fn set_collective_leader(&self, task: &str) {
        self.collective.set_leader(task);
    }

    /// Its devices.
    pub fn device_attributes(&self) -> Vec<DeviceAttributes> {
        self.devices
            .iter()
            .map(|device| DeviceAttributes {
                name: device.name.clone(),
                kind: device.kind.clone(),
                memory_limit: device.memory_limit,
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
        let link = RemoteWorker::new(self.transport.connect(task, address)?, self.runtime.clone());
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
fn fresh_resources(task: &Task, extensions: Extensions, counters: &Counters) -> Arc<Resources> {
    let resources = Resources::with_extensions(&task.job, extensions);
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
            run_long(&*self.0.runtime, || session.register(&request))
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

    fn complete_group(&self, request: CompleteGroup) -> Future<'_, CompletedGroup> {
        Box::pin(collectives::complete_group(&self.0, request))
    }

    fn complete_instance(&self, request: CompleteInstance) -> Future<'_, i32> {
        Box::pin(collectives::complete_instance(&self.0, request))
    }

    fn get_step_sequence(&self, graph_keys: Vec<i64>) -> Future<'_, Vec<(i64, u64)>> {
        Box::pin(async move { collectives::step_sequence(&self.0, &graph_keys) })
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

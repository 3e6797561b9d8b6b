//! A session of a worker: its graphs, its kernels with state, its view of the cluster.

use crate::api::{CreateWorkerSession, RegisterGraph};
use crate::collective::run::SessionCollectives;
use crate::worker::remote_function::SessionTask;
use crate::worker::{LocalDevice, Worker, fresh_resources};
use crate::{ClusterSpec, Task};
use exec::{Devices, Kernels, Library, Program, Target, compile, prepare};
use graph::{DeviceSpec, FlatGraph};
use membership::{Member, SyncPolicy};
use op::{CollectiveRuntime, DeviceTypes, Extensions, Resources, Siblings};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Result, aborted, internal, invalid};
use std::sync::{Arc, Weak};
use tensor::Tensor;

pub(crate) struct WorkerSession {
    pub master_task: String,
    pub master_incarnation: i64,
    /// Whether its master is another task, so that what it fetches is sent there.
    has_remote_master: bool,
    pub cluster: Option<(ClusterSpec, Task)>,
    kernels: Arc<Kernels>,
    devices: Arc<SessionDevices>,
    differentiate: Option<Arc<exec::Differentiate>>,
    graphs: Mutex<FxHashMap<String, Arc<Registered>>>,
    next: std::sync::atomic::AtomicU64,
    /// The session's membership in synchronous training, if this task distinguishes sessions.
    pub member: Option<Arc<Member>>,
    /// Whether its devices are its own, so that their resources end with it.
    isolates_state: bool,
    /// Holds the member, where kernels find it.
    pub extensions: Extensions,
}

/// A graph that is ready to run, with the functions that its kernels call.
pub(crate) struct Registered {
    pub program: Arc<Program>,
    /// What its kernels find: the session's values, and the leader that the graph came with.
    pub extensions: Extensions,
    /// Whether it takes part in collective operations.
    pub is_collective: bool,
    _library: Arc<Library>,
}

impl WorkerSession {
    pub fn new(worker: &Arc<Worker>, request: &CreateWorkerSession) -> Arc<WorkerSession> {
        let mut devices = worker.devices.clone();
        if let Some((_, own)) = &request.cluster {
            for device in &mut devices {
                device.name = format!("{own}/device:{}:{}", device.kind, device.id);
            }
        }
        if request.isolate_state {
            for device in &mut devices {
                device.resources = fresh_resources(&worker.task, worker.extensions.clone(), &worker.counters);
            }
        }
        let own = request.cluster.as_ref().map_or_else(|| worker.name.clone(), |(_, task)| task.to_string());
        let collectives = collectives(worker, &request.cluster, vec![request.master_task.clone()]);
        let member = (worker.sync_policy != SyncPolicy::Tf && !request.session.is_empty())
            .then(|| Arc::new(Member::new(worker.sync_policy, &request.master_task)));
        Arc::new(WorkerSession {
            has_remote_master: !request.master_task.is_empty() && request.master_task != own,
            master_task: request.master_task.clone(),
            master_incarnation: request.master_incarnation,
            cluster: request.cluster.clone(),
            kernels: Arc::new(
                Kernels::new(worker.registry.clone()).with_device_types(DeviceTypes::clone(&worker.device_types)),
            ),
            devices: Arc::new(SessionDevices {
                devices,
                worker: Arc::downgrade(worker),
                session: request.session.clone(),
                cluster: request.cluster.clone(),
            }),
            isolates_state: request.isolate_state,
            differentiate: worker.differentiate.clone(),
            graphs: Mutex::default(),
            next: Default::default(),
            extensions: member.iter().cloned().fold(Extensions::new(), Extensions::with).with(collectives),
            member,
        })
    }

    /// Counts a tensor that its master receives with the answer of a run.
    pub fn count_fetched(&self, worker: &Worker, key: &str, tensor: &Tensor) {
        if self.has_remote_master {
            worker.counters.sent(key, tensor.byte_size());
        }
    }

    /// Ends its part in synchronous training: no more gradients of this session will arrive.
    pub fn end(&self) {
        if let Some(member) = &self.member {
            member.end();
        }
    }

    /// The session of masters that create none.
    pub fn shared(worker: &Arc<Worker>) -> Arc<WorkerSession> {
        WorkerSession::new(worker, &CreateWorkerSession::default())
    }

    pub fn register(&self, request: &RegisterGraph) -> Result<String> {
        let flat = FlatGraph::new(&request.graph, self.kernels.registry().as_ref())?;
        for node in &flat.nodes {
            if node.def.device.is_empty() {
                return Err(invalid!("Node '{}' is missing a device specification", node.def.name));
            }
        }
        let devices = self.devices.clone();
        let library = Library::new(&flat, devices, self.kernels.clone(), self.differentiate.clone());
        let program = Arc::new(match request.no_rewriting {
            true => compile(flat, &self.kernels, &library, "")?,
            false => prepare(flat, &self.kernels, &library)?,
        });
        let number = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let handle = format!("{number:016x}");
        let registered = Registered {
            program,
            extensions: self.extensions_of(request),
            is_collective: request.collective_graph_key != 0,
            _library: library,
        };
        self.graphs.lock().insert(handle.clone(), Arc::new(registered));
        Ok(handle)
    }

    fn extensions_of(&self, request: &RegisterGraph) -> Extensions {
        match (&*request.collective_group_leader, self.devices.worker.upgrade()) {
            (leader, Some(worker)) if !leader.is_empty() => {
                self.extensions.clone().with(collectives(&worker, &self.cluster, vec![leader.to_string()]))
            }
            _ => self.extensions.clone(),
        }
    }

    /// Forgets a graph; steps that are running keep it until they end.
    pub fn deregister(&self, handle: &str) -> Result<()> {
        let found = self.graphs.lock().remove(handle);
        found
            .map(drop)
            .ok_or_else(|| aborted!("Graph handle is not found: {handle}. Possibly, this worker just restarted."))
    }

    pub fn graph(&self, handle: &str) -> Result<Arc<Registered>> {
        self.graphs.lock().get(handle).cloned().ok_or_else(|| aborted!("Graph handle is not found: {handle}"))
    }
}

/// The collective operations of a session, led by the first of these tasks unless the server names another one.
fn collectives(worker: &Arc<Worker>, cluster: &Option<(ClusterSpec, Task)>, leaders: Vec<String>) -> CollectiveRuntime {
    let (worker, cluster) = (Arc::downgrade(worker), cluster.clone());
    CollectiveRuntime(Arc::new(SessionCollectives { worker, cluster, leaders }))
}

impl Drop for WorkerSession {
    /// An iterator refers to its device through the functions that it calls, so nothing else would remove it.
    fn drop(&mut self) {
        if self.isolates_state {
            self.devices.devices.iter().for_each(|device| device.resources.clear_all());
        }
    }
}

struct SessionDevices {
    devices: Vec<LocalDevice>,
    worker: Weak<Worker>,
    session: String,
    /// The cluster of a session that brings its own.
    cluster: Option<(ClusterSpec, Task)>,
}

impl Siblings for SessionDevices {
    fn resources_of(&self, device: &str) -> Option<Arc<Resources>> {
        let found = self.devices.iter().find(|own| own.name == device);
        found.map(|device| device.resources.clone())
    }
}

impl Devices for SessionDevices {
    fn device(&self, name: &str) -> Result<(String, Arc<Resources>)> {
        let found = self.devices.iter().find(|device| device.name == name).or_else(|| {
            let wanted = DeviceSpec::parse(name).ok()?;
            // Functions name devices of the cluster in which they were written; only the local part applies here.
            let local = DeviceSpec { kind: wanted.kind, id: wanted.id, ..DeviceSpec::default() };
            self.devices.iter().find(|device| DeviceSpec::parse(&device.name).is_ok_and(|spec| spec.matches(&local)))
        });
        let device = found.or(self.devices.first()).ok_or_else(|| invalid!("this task has no device {name}"))?;
        Ok((device.name.clone(), device.resources.clone()))
    }

    fn target(&self, name: &str, from: &str) -> Result<Target> {
        let spec = DeviceSpec::parse(name)?.or(&DeviceSpec::parse(from)?);
        let device = spec.to_string();
        if self.devices.iter().any(|own| own.name == device) {
            return Ok(Target::Here(device));
        }
        let worker = self.worker.upgrade().ok_or_else(|| internal!("this task has ended"))?;
        let (cluster, own) = self.cluster.clone().unwrap_or_else(|| (worker.cluster(), worker.task.clone()));
        match Task::of_device(&spec) {
            Some(task) if task != own && cluster.address(&task).is_some() => {
                let (worker, session) = (self.worker.clone(), self.session.clone());
                Ok(Target::There(Arc::new(SessionTask { worker, session, cluster, task }), device))
            }
            Some(task) if task != own => Err(invalid!("No worker known as {task}")),
            _ => Err(internal!("Currently don't support instantiating functions on device: {device}")),
        }
    }
}

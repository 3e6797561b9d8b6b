//! A client's session: its graph, the placement of the nodes, and what its steps need.

use crate::api::{CreateWorkerSession, DeviceAttributes, from_task};
use crate::master::callable::Callables;
use crate::master::discover::{self, Target};
use crate::master::partial::PartialRuns;
use crate::master::plans::Plans;
use crate::runtime::run_long;
use crate::{SessionConfig, Task, Worker};
use futures_util::future::join_all;
use graph::{DeviceSpec, FlatGraph, GraphDef};
use op::Cancel;
use parking_lot::{RwLock, RwLockUpgradableReadGuard};
use plan::{Device, LowerOptions, Placement};
use rustc_hash::FxHashMap;
use status::{Error, Result, aborted, invalid};
use std::sync::Arc;

pub(crate) struct MasterSession {
    pub handle: String,
    pub worker: Arc<Worker>,
    /// The master's own task, by its name in this session's cluster.
    pub own: Task,
    pub config: SessionConfig,
    pub attributes: Vec<DeviceAttributes>,
    pub devices: Vec<Device>,
    pub targets: Vec<Target>,
    /// Places in `targets` by the names of the tasks.
    pub target_by_name: FxHashMap<String, usize>,
    pub state: RwLock<State>,
    pub plans: Plans,
    pub callables: Callables,
    pub partials: PartialRuns,
    /// Ends the running steps when the session is closed.
    pub closing: Cancel,
}

/// The graph and the placement of its nodes.
pub(crate) struct State {
    pub graph: Arc<FlatGraph>,
    pub placement: Arc<Placement>,
    pub version: i64,
}

impl MasterSession {
    pub async fn open(
        worker: &Arc<Worker>,
        handle: String,
        def: GraphDef,
        config: SessionConfig,
    ) -> Result<MasterSession> {
        let own = discover::own_task(worker, &config)?;
        let (attributes, targets) = discover::devices(worker, &config).await?;
        let devices = attributes
            .iter()
            .map(|device| Ok(Device::new(DeviceSpec::parse(&device.name)?, device.incarnation, &worker.device_types)))
            .collect::<Result<Vec<_>>>()?;
        let (graph, placement) = run_long(&*worker.runtime, || {
            let graph = lowered(FlatGraph::new(&def, worker.registry.as_ref())?, worker, &own, &config)?;
            let placement = plan::place(&graph, &devices, &[], config.soft_placement)?;
            Ok((graph, placement))
        })?;
        if config.log_placement {
            tracing::info!(target: "placement", "{}", device_map(&attributes));
            log_placement(&graph, &placement, &devices, 0);
        }
        let session = MasterSession {
            handle,
            worker: worker.clone(),
            own,
            config,
            attributes,
            devices,
            target_by_name: targets.iter().enumerate().map(|(place, (task, _))| (task.to_string(), place)).collect(),
            targets,
            state: RwLock::new(State { graph: Arc::new(graph), placement: Arc::new(placement), version: 0 }),
            plans: Plans::default(),
            callables: Callables::default(),
            partials: PartialRuns::default(),
            closing: Cancel::default(),
        };
        session.create_at_tasks().await?;
        Ok(session)
    }

    /// Creates the session at every task that takes part.
    async fn create_at_tasks(&self) -> Result<()> {
        let calls = self.targets.iter().map(|(task, client)| {
            client.create_session(CreateWorkerSession {
                session: self.handle.clone(),
                isolate_state: self.config.isolate_state,
                master_task: self.own.to_string(),
                master_incarnation: self.devices[0].incarnation as i64,
                cluster: self.config.cluster.clone().map(|cluster| (cluster, task.clone())),
            })
        });
        for ((task, _), answer) in self.targets.iter().zip(join_all(calls).await) {
            answer.map_err(|error| from_task(error, &task.to_string()))?;
        }
        Ok(())
    }

    pub fn extend(&self, def: &GraphDef, version: i64) -> Result<i64> {
        // Steps that begin meanwhile use the graph as it was.
        let state = self.state.upgradable_read();
        if version != state.version {
            return Err(aborted!("Current version is {} but caller expected {version}.", state.version));
        }
        if let Some(node) = def.nodes.iter().find(|node| state.graph.find(&node.name).is_some()) {
            return Err(invalid!(
                "GraphDef argument to Extend includes node '{}', which was created by a previous call to Create or \
                 Extend in this session.",
                node.name
            ));
        }
        let mut graph = (*state.graph).clone();
        let first = graph.nodes.len();
        graph.extend(def, self.worker.registry.as_ref())?;
        let graph = lowered(graph, &self.worker, &self.own, &self.config)?;
        let placement = plan::place(&graph, &self.devices, &state.placement, self.config.soft_placement)?;
        if self.config.log_placement {
            log_placement(&graph, &placement, &self.devices, first);
        }
        let mut state = RwLockUpgradableReadGuard::upgrade(state);
        *state = State { graph: Arc::new(graph), placement: Arc::new(placement), version: version + 1 };
        Ok(state.version)
    }

    /// Ends running steps with this error, and ends the session at all tasks.
    pub async fn close(&self, error: Error) {
        self.closing.cancel(error);
        self.end_partial_runs();
        let calls = self.targets.iter().map(|(_, client)| client.delete_session(self.handle.clone()));
        for ((task, _), answer) in self.targets.iter().zip(join_all(calls).await) {
            if let Err(error) = answer {
                tracing::warn!("{task} did not end session {}: {error}", self.handle);
            }
        }
    }
}

/// The graph with the bodies of functions that span several tasks inlined, and with conditionals as switches and merges.
fn lowered(graph: FlatGraph, worker: &Worker, own: &Task, config: &SessionConfig) -> Result<FlatGraph> {
    let options = LowerOptions { home: own.spec(), conditionals: !config.functional_conditionals };
    Ok(plan::lower(&graph, worker.registry.as_ref(), &options)?.unwrap_or(graph))
}

/// The devices of a session, as TensorFlow logs them at its start. TensorFlow leaves out devices without a hardware
/// description, as CPUs are; here every device is listed with its type.
pub(crate) fn device_map(devices: &[DeviceAttributes]) -> String {
    let lines: String = devices.iter().map(|device| format!("\n{} -> device: {}", device.name, device.kind)).collect();
    format!("Device mapping:{lines}")
}

fn log_placement(graph: &FlatGraph, placement: &Placement, devices: &[Device], first: usize) {
    for (node, &device) in graph.nodes.iter().zip(placement).skip(first) {
        tracing::info!(target: "placement", "{}: ({}): {}", node.def.name, node.def.op, devices[device as usize].spec);
    }
}

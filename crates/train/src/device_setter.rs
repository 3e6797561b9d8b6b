//! Devices for between-graph training: variables on the ps tasks, all other nodes on the worker. Clients that build
//! the same graph get the same devices.

use graph::{AttrValue, DeviceSpec, NodeDef, OpSet, Scope};
use md5::{Digest, Md5};
use parking_lot::Mutex;
use session::ClusterSpec;
use status::{Error, Result, invalid};
use std::sync::Arc;

/// Chooses the ps task of a node. It is called once for each node, in the order in which they are created.
pub type PsPlacement = Box<dyn FnMut(&NodeDef) -> Result<u32> + Send>;

/// How many ps tasks there are.
pub enum PsTasks {
    /// This many.
    Count(usize),
    /// The number of tasks that a cluster has in the job of the ps device.
    Of(ClusterSpec),
}

impl From<usize> for PsTasks {
    fn from(count: usize) -> PsTasks {
        PsTasks::Count(count)
    }
}

impl From<&ClusterSpec> for PsTasks {
    fn from(cluster: &ClusterSpec) -> PsTasks {
        PsTasks::Of(cluster.clone())
    }
}

impl PsTasks {
    fn count(&self, ps: &DeviceSpec) -> usize {
        match self {
            PsTasks::Count(count) => *count,
            PsTasks::Of(cluster) => {
                let tasks = ps.job.as_deref().and_then(|job| cluster.job(job));
                tasks.map_or(0, |tasks| tasks.len())
            }
        }
    }
}

/// A device setter for a number of ps tasks, or for those of a cluster: `replica_device_setter(2)` or
/// `replica_device_setter(&cluster)`. Without ps tasks it changes nothing.
pub fn replica_device_setter(ps_tasks: impl Into<PsTasks>) -> ReplicaDeviceSetter {
    ReplicaDeviceSetter {
        ps_tasks: ps_tasks.into(),
        ps_device: "/job:ps".to_string(),
        worker_device: "/job:worker".to_string(),
        merge_devices: true,
        ps_ops: None,
        ps_placement: None,
    }
}

/// The settings of a device setter.
pub struct ReplicaDeviceSetter {
    ps_tasks: PsTasks,
    ps_device: String,
    worker_device: String,
    merge_devices: bool,
    ps_ops: Option<Vec<String>>,
    ps_placement: Option<PsPlacement>,
}

impl ReplicaDeviceSetter {
    /// Sets the device of ps ops. The default is `/job:ps`; empty for no ps.
    pub fn ps_device(mut self, device: &str) -> ReplicaDeviceSetter {
        self.ps_device = device.to_string();
        self
    }

    /// Sets the device of all other ops. The default is `/job:worker`.
    pub fn worker_device(mut self, device: &str) -> ReplicaDeviceSetter {
        self.worker_device = device.to_string();
        self
    }

    /// Sets whether devices are merged. Without merging, a node that asks for a device keeps it as it is.
    pub fn merge_devices(mut self, merge: bool) -> ReplicaDeviceSetter {
        self.merge_devices = merge;
        self
    }

    /// Sets the ops that go to the ps, in place of those whose rows say that they hold state that all workers share:
    /// variables, mutable tables and accumulators.
    pub fn ps_ops(mut self, ops: &[&str]) -> ReplicaDeviceSetter {
        self.ps_ops = Some(ops.iter().map(|op| op.to_string()).collect());
        self
    }

    /// Sets how ps tasks are chosen, in place of [`round_robin`].
    pub fn ps_strategy(mut self, placement: PsPlacement) -> ReplicaDeviceSetter {
        self.ps_placement = Some(placement);
        self
    }

    /// The scope with these devices. An invalid device becomes the error of the graph.
    pub fn on(self, scope: &Scope) -> Scope {
        match self.chooser(scope.graph().ops()) {
            Ok(Some(chooser)) => scope.on_device_of(move |node, device| chooser.device(node, device)),
            Ok(None) => scope.clone(),
            Err(error) => {
                scope.graph().fail(error);
                scope.clone()
            }
        }
    }

    /// None if there are no ps tasks.
    fn chooser(self, ops: &Arc<dyn OpSet>) -> Result<Option<Chooser>> {
        let ps = DeviceSpec::parse(&self.ps_device)?;
        let ps_tasks = self.ps_tasks.count(&ps);
        if ps_tasks == 0 {
            return Ok(None);
        }
        let placement = self.ps_placement.unwrap_or_else(|| round_robin(ps_tasks));
        Ok(Some(Chooser {
            ps_tasks,
            ps,
            worker: DeviceSpec::parse(&self.worker_device)?,
            merge_devices: self.merge_devices,
            ps_ops: if self.ps_device.is_empty() { Some(Vec::new()) } else { self.ps_ops },
            ops: ops.clone(),
            placement: Mutex::new(placement),
        }))
    }
}

struct Chooser {
    ps_tasks: usize,
    ps: DeviceSpec,
    worker: DeviceSpec,
    merge_devices: bool,
    /// The ops that go to the ps; if none, the facts of each op say whether it does.
    ps_ops: Option<Vec<String>>,
    ops: Arc<dyn OpSet>,
    placement: Mutex<PsPlacement>,
}

impl Chooser {
    /// The device of a node, for which inner scopes ask for `asked`.
    fn device(&self, node: &NodeDef, asked: &DeviceSpec) -> Result<DeviceSpec> {
        if !self.merge_devices && *asked != DeviceSpec::default() {
            return Ok(asked.clone());
        }
        if !self.is_ps_op(&node.op) {
            return Ok(asked.clone().or(&self.worker));
        }
        let mut ps = self.ps.clone();
        if ps.job.is_some() && (asked.job.is_none() || asked.job == ps.job) {
            ps.task = Some(self.task(node)?);
        }
        Ok(asked.clone().or(&ps))
    }

    fn is_ps_op(&self, op: &String) -> bool {
        match &self.ps_ops {
            Some(ops) => ops.contains(op),
            None => self.ops.op_facts(op).holds_shared_state,
        }
    }

    fn task(&self, node: &NodeDef) -> Result<u32> {
        let task = (self.placement.lock())(node)?;
        match (task as usize) < self.ps_tasks {
            true => Ok(task),
            false => Err(invalid!("The placement put {} on ps task {task} of {}", node.name, self.ps_tasks)),
        }
    }
}

/// The ps tasks in turn, in the order in which nodes are created.
pub fn round_robin(ps_tasks: usize) -> PsPlacement {
    let mut tasks = (0..ps_tasks as u32).cycle();
    Box::new(move |node| tasks.next().ok_or_else(|| no_tasks(node)))
}

/// The ps task with the least load so far.
pub fn greedy(ps_tasks: usize, mut load: impl FnMut(&NodeDef) -> Result<u64> + Send + 'static) -> PsPlacement {
    let mut loads = vec![0u64; ps_tasks];
    Box::new(move |node| {
        let least = loads.iter_mut().enumerate().min_by_key(|(_, load)| **load);
        let (task, sum) = least.ok_or_else(|| no_tasks(node))?;
        *sum = sum.saturating_add(load(node)?);
        Ok(task as u32)
    })
}

/// A ps task that depends only on the name of the node and a seed, so that adding other nodes does not change it.
pub fn hashed(ps_tasks: usize, seed: i64) -> PsPlacement {
    Box::new(move |node| {
        let digest = u128::from_be_bytes(Md5::digest(format!("{}_{seed}", node.name)).into());
        digest.checked_rem(ps_tasks as u128).map(|task| task as u32).ok_or_else(|| no_tasks(node))
    })
}

/// The size of a variable in bytes, as the load for [`greedy`].
pub fn byte_size_load(node: &NodeDef) -> Result<u64> {
    let (Some(AttrValue::Type(dtype)), Some(AttrValue::Shape(shape))) =
        (node.attrs.get("dtype"), node.attrs.get("shape"))
    else {
        return Err(invalid!("{} ({}) has no attributes dtype and shape, so its size is unknown", node.name, node.op));
    };
    let known = shape.known().ok_or_else(|| invalid!("Shape {shape} of {} is not fully defined", node.name))?;
    Ok((known.checked_elements()? as u64).saturating_mul(dtype.base().size() as u64))
}

fn no_tasks(node: &NodeDef) -> Error {
    invalid!("There is no ps task for {}", node.name)
}

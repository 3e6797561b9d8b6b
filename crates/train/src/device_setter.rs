//! Devices for between-graph training: variables on the ps tasks, everything else on the worker. Every client
//! that builds the same graph gets the same devices.

use graph::{AttrValue, DeviceSpec, NodeDef, OpSet, Scope};
use md5::{Digest, Md5};
use parking_lot::Mutex;
use session::ClusterSpec;
use status::{Error, Result, invalid};
use std::sync::Arc;

/// Chooses the ps task of a node; called once for each, in the order they are made.
pub type Strategy = Box<dyn FnMut(&NodeDef) -> Result<u32> + Send>;

/// How many ps tasks there are.
pub enum PsTasks {
    /// So many.
    Count(usize),
    /// As many as a cluster has in the job of the ps device.
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

/// A device setter for so many ps tasks, or for those of a cluster: `replica_device_setter(2)` or
/// `replica_device_setter(&cluster)`. With none it changes nothing.
pub fn replica_device_setter(ps_tasks: impl Into<PsTasks>) -> ReplicaDeviceSetter {
    ReplicaDeviceSetter {
        ps_tasks: ps_tasks.into(),
        ps_device: "/job:ps".to_string(),
        worker_device: "/job:worker".to_string(),
        merge_devices: true,
        ps_ops: None,
        ps_strategy: None,
    }
}

/// A device setter in the making.
pub struct ReplicaDeviceSetter {
    ps_tasks: PsTasks,
    ps_device: String,
    worker_device: String,
    merge_devices: bool,
    ps_ops: Option<Vec<String>>,
    ps_strategy: Option<Strategy>,
}

impl ReplicaDeviceSetter {
    /// The device of ps ops, `/job:ps` if nothing is said; empty for no ps.
    pub fn ps_device(mut self, device: &str) -> ReplicaDeviceSetter {
        self.ps_device = device.to_string();
        self
    }

    /// The device of all others, `/job:worker` if nothing is said.
    pub fn worker_device(mut self, device: &str) -> ReplicaDeviceSetter {
        self.worker_device = device.to_string();
        self
    }

    /// Without merging, a node that has any device keeps it as it is.
    pub fn merge_devices(mut self, merge: bool) -> ReplicaDeviceSetter {
        self.merge_devices = merge;
        self
    }

    /// The ops that go to the ps, in place of those whose rows say that they hold state that all workers share:
    /// variables, mutable tables and accumulators.
    pub fn ps_ops(mut self, ops: &[&str]) -> ReplicaDeviceSetter {
        self.ps_ops = Some(ops.iter().map(|op| op.to_string()).collect());
        self
    }

    /// How ps tasks are chosen, in place of [`round_robin`].
    pub fn ps_strategy(mut self, strategy: Strategy) -> ReplicaDeviceSetter {
        self.ps_strategy = Some(strategy);
        self
    }

    /// The scope with these devices. A device that cannot be read is remembered as the graph's error.
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
        let strategy = self.ps_strategy.unwrap_or_else(|| round_robin(ps_tasks));
        Ok(Some(Chooser {
            ps_tasks,
            ps,
            worker: DeviceSpec::parse(&self.worker_device)?,
            merge_devices: self.merge_devices,
            ps_ops: if self.ps_device.is_empty() { Some(Vec::new()) } else { self.ps_ops },
            ops: ops.clone(),
            strategy: Mutex::new(strategy),
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
    strategy: Mutex<Strategy>,
}

impl Chooser {
    /// The device of a node, of which inner scopes say `asked`.
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
        let task = (self.strategy.lock())(node)?;
        match (task as usize) < self.ps_tasks {
            true => Ok(task),
            false => Err(invalid!("The strategy put {} on ps task {task} of {}", node.name, self.ps_tasks)),
        }
    }
}

/// One ps task after the other, in the order in which nodes are made.
pub fn round_robin(ps_tasks: usize) -> Strategy {
    let mut tasks = (0..ps_tasks as u32).cycle();
    Box::new(move |node| tasks.next().ok_or_else(|| no_tasks(node)))
}

/// The ps task that has the least load so far, the first of several.
pub fn greedy(ps_tasks: usize, mut load: impl FnMut(&NodeDef) -> Result<u64> + Send + 'static) -> Strategy {
    let mut loads = vec![0u64; ps_tasks];
    Box::new(move |node| {
        let least = loads.iter_mut().enumerate().min_by_key(|(_, load)| **load);
        let (task, sum) = least.ok_or_else(|| no_tasks(node))?;
        *sum = sum.saturating_add(load(node)?);
        Ok(task as u32)
    })
}

/// A ps task that depends on the node's name and a seed alone, so that it stays when other nodes come and go.
pub fn hashed(ps_tasks: usize, seed: i64) -> Strategy {
    Box::new(move |node| {
        let digest = u128::from_be_bytes(Md5::digest(format!("{}_{seed}", node.name)).into());
        digest.checked_rem(ps_tasks as u128).map(|task| task as u32).ok_or_else(|| no_tasks(node))
    })
}

/// The size of a variable in bytes, as a load for [`greedy`].
pub fn byte_size_load(node: &NodeDef) -> Result<u64> {
    let (Some(AttrValue::Type(dtype)), Some(AttrValue::Shape(shape))) =
        (node.attrs.get("dtype"), node.attrs.get("shape"))
    else {
        return Err(invalid!("{} ({}) has no dtype and shape to tell its size", node.name, node.op));
    };
    let known = shape.known().ok_or_else(|| invalid!("Shape {shape} of {} is not fully defined", node.name))?;
    Ok((known.checked_elements()? as u64).saturating_mul(dtype.base().size() as u64))
}

fn no_tasks(node: &NodeDef) -> Error {
    invalid!("There is no ps task for {}", node.name)
}

//! Which tasks and devices a session has.

use crate::api::{DeviceAttributes, WorkerClient, from_task};
use crate::{SessionConfig, Task, Worker};
use futures_util::future::join_all;
use graph::DeviceSpec;
use status::{Result, invalid};
use std::sync::Arc;

/// A task of a session and how to reach it.
pub(crate) type Target = (Task, Arc<dyn WorkerClient>);

/// The devices of a session, the master's own first, and the tasks they are on.
pub(crate) async fn devices(
    worker: &Arc<Worker>,
    config: &SessionConfig,
) -> Result<(Vec<DeviceAttributes>, Vec<Target>)> {
    let targets = targets(worker, config, &own_task(worker, config)?)?;
    let answers = join_all(targets.iter().map(|(_, client)| client.get_status())).await;
    let mut devices = Vec::new();
    for ((task, _), answer) in targets.iter().zip(answers) {
        let found = answer.map_err(|error| from_task(error, &task.to_string()))?;
        devices.extend(found.into_iter().map(|device| renamed(device, task)));
    }
    Ok((devices, targets))
}

/// The master's own task: in a cluster that the client brings, the one at the address the client called.
pub(crate) fn own_task(worker: &Arc<Worker>, config: &SessionConfig) -> Result<Task> {
    let Some(cluster) = &config.cluster else { return Ok(worker.task().clone()) };
    let called = config.target.split_once("://").map_or(&*config.target, |(_, address)| address);
    let mut found = cluster.tasks().filter(|task| cluster.address(task) == Some(called));
    let own = found.next();
    if found.next().is_some() {
        return Err(invalid!(
            "Found multiple matching tasks that correspond to to the master. Master target: '{}'. ClusterDef: {cluster}",
            config.target
        ));
    }
    match own {
        Some(task) if task == *worker.task() && worker.cluster() != *cluster => Err(invalid!(
            "The ClusterSpec names the job and task index to be the same names that were provided when the server \
             booted. This is currently not allowed. Job: {}, task index: {}",
            task.job,
            task.index
        )),
        Some(task) => Ok(task),
        None => Ok(worker.task().clone()),
    }
}

/// The tasks that take part: the master's own, and those that match a filter.
fn targets(worker: &Arc<Worker>, config: &SessionConfig, own: &Task) -> Result<Vec<Target>> {
    let cluster = config.cluster.clone().unwrap_or_else(|| worker.cluster());
    let filters = config.device_filters.iter().map(|filter| DeviceSpec::parse(filter)).collect::<Result<Vec<_>>>()?;
    let mut targets = vec![(own.clone(), worker.client())];
    for task in cluster.tasks().filter(|task| task != own) {
        if filters.is_empty() || filters.iter().any(|filter| filter.matches(&task.spec())) {
            let link = worker.link(&cluster, &task)?;
            targets.push((task, link));
        }
    }
    Ok(targets)
}

/// A device under the name its task has in this cluster.
fn renamed(mut device: DeviceAttributes, task: &Task) -> DeviceAttributes {
    if let Ok(spec) = DeviceSpec::parse(&device.name) {
        device.name = DeviceSpec { kind: spec.kind, id: spec.id, ..task.spec() }.to_string();
    }
    device
}

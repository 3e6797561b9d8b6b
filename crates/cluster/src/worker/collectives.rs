//! Answers the calls of other tasks about groups, collective operations and their steps.

use crate::api::{CompleteGroup, CompleteInstance, CompletedGroup};
use crate::collective::groups::Join;
use crate::collective::resolve::{self, Resolver};
use crate::worker::Worker;
use status::{Result, internal, invalid};
use std::sync::Arc;

/// The resolver of this task, for calls that belong to no session.
fn resolver(worker: &Arc<Worker>) -> Resolver {
    Resolver::new(worker, worker.cluster(), &worker.task, &[])
}

pub(super) async fn complete_group(worker: &Arc<Worker>, request: CompleteGroup) -> Result<CompletedGroup> {
    let CompleteGroup { group_key: key, group_size, device_type: kind, device } = request;
    let size = usize::try_from(group_size).ok().filter(|&size| size > 0);
    let size = size.ok_or_else(|| invalid!("group_size must be positive integer but got {group_size}"))?;
    let group = resolver(worker).group(Join { key, size, kind, device, rank: None }).await?;
    Ok(CompletedGroup {
        group_key: key,
        device_type: group.kind.clone(),
        num_tasks: group.devices_by_task().len() as i32,
        devices: group.members.iter().map(|member| member.device.clone()).collect(),
    })
}

pub(super) async fn complete_instance(worker: &Arc<Worker>, request: CompleteInstance) -> Result<i32> {
    resolve::complete_instance(resolver(worker), request).await
}

pub(super) fn step_sequence(worker: &Arc<Worker>, graph_keys: &[i64]) -> Result<Vec<(i64, u64)>> {
    if resolver(worker).leader.is_some() {
        return Err(internal!("GetStepSequenceAsync called at non-group-leader"));
    }
    Ok(graph_keys.iter().map(|&key| (key, worker.collective.steps.choose(key))).collect())
}

//! Agrees with the leader about groups and operations. What the leader has answered is remembered.

use crate::api::{CompletedGroup, Future, WorkerClient, from_task};
use crate::collective::groups::{Group, Join, Joined};
use crate::collective::instances::{Arrived, CompleteInstance, Source};
use crate::worker::Worker;
use crate::{ClusterSpec, Task};
use status::{Code, Error, Result, aborted, failed_precondition, internal};
use std::sync::Arc;
use std::time::Duration;

/// How long a leader that does not answer is called again, and the pause between calls.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(250);

/// Calls the leader of a group.
#[derive(Clone)]
pub(crate) struct Resolver {
    pub worker: Arc<Worker>,
    pub cluster: ClusterSpec,
    /// The leader, if it is another task.
    pub leader: Option<Task>,
}

impl Resolver {
    /// The resolver of a task `own` of a cluster. The first of these leaders that is in the cluster leads; this task
    /// itself if none is.
    pub fn new(worker: &Arc<Worker>, cluster: ClusterSpec, own: &Task, leaders: &[&str]) -> Resolver {
        let leader = worker.collective.leader(leaders);
        let leader = leader.filter(|leader| leader != own && cluster.address(leader).is_some());
        Resolver { worker: worker.clone(), cluster, leader }
    }

    /// The complete group of a device, if it is known.
    pub fn known_group(&self, join: &Join) -> Option<Result<Arc<Group>>> {
        self.worker.collective.groups.lock().find_member(join)
    }

    /// Joins a group, and waits until it is complete.
    pub async fn group(&self, join: Join) -> Result<Arc<Group>> {
        let Some(leader) = &self.leader else {
            let joined = self.worker.collective.groups.lock().join(&join);
            self.check_whole(join.key);
            return match joined {
                Joined::Now(answer) => answer,
                Joined::Later(answer) => answer.await.unwrap_or_else(|_| Err(aborted!("the group was given up"))),
            };
        };
        if let Some(known) = self.known_group(&join) {
            return known;
        }
        let answer = self.ask(leader, |leader| leader.complete_group(join.clone().into())).await?;
        let group = formed(answer, &join)?;
        Ok(self.worker.collective.groups.lock().remember(group))
    }

    /// The source of an operation, if the leader has answered before.
    pub fn known_instance(&self, group: &Group, request: &CompleteInstance) -> Option<Result<Source>> {
        match &self.leader {
            Some(_) => group.instances.lock().answered(request),
            None => None,
        }
    }

    /// Asks for an operation of a group; gives its source.
    pub async fn instance(&self, group: &Group, rank: usize, request: CompleteInstance) -> Result<Source> {
        let Some(leader) = &self.leader else { return arrive(group, rank, &request).await };
        if let Some(known) = self.known_instance(group, &request) {
            return known;
        }
        let source = self.ask(leader, |leader| leader.complete_instance(request.clone())).await?;
        group.instances.lock().remember(&request, source);
        Ok(source)
    }

    /// Calls the leader, again if it is not up yet.
    pub async fn ask<T>(
        &self,
        leader: &Task,
        call: impl for<'a> Fn(&'a dyn WorkerClient) -> Future<'a, T> + Send + Sync,
    ) -> Result<T> {
        let link = self.worker.link(&self.cluster, leader)?;
        let mut left = PATIENCE;
        loop {
            match call(&*link).await {
                Err(error) if error.code == Code::Unavailable && left > Duration::ZERO => {
                    self.worker.runtime.sleep(PAUSE).await;
                    left = left.saturating_sub(PAUSE);
                }
                answer => return answer.map_err(|error| from_task(error, &leader.to_string())),
            }
        }
    }

    /// An operation of a group has failed: it is not taken for granted that the group is as it was.
    pub fn failed(&self, group: &Arc<Group>, error: &Error) {
        let mut groups = self.worker.collective.groups.lock();
        match &self.leader {
            Some(_) => groups.forget(group), // the leader is asked again
            None if [Code::Unavailable, Code::FailedPrecondition].contains(&error.code) => {
                groups.mark_broken(group, error);
                drop(groups);
                self.check_whole(group.key);
            }
            None => {}
        }
    }

    /// Fails the tasks that wait for buffers here if their group is formed again: they must join it.
    fn check_whole(&self, key: i32) {
        let whole = self.worker.collective.groups.lock().check_whole(key);
        if let Err(error) = whole {
            self.worker.steps.fail_consumers(&format!("{key}:"), &error);
        }
    }
}

/// A member asks for an operation of a group that this task leads.
pub(crate) async fn arrive(group: &Group, rank: usize, request: &CompleteInstance) -> Result<Source> {
    let arrived = group.instances.lock().arrive(request, rank, group.members.len());
    match arrived {
        Arrived::Now(answer) => answer,
        Arrived::Later(answer) => answer.await.unwrap_or_else(|_| Err(aborted!("the operation was given up"))),
    }
}

/// The group in the answer of a leader.
fn formed(answer: CompletedGroup, join: &Join) -> Result<Group> {
    let CompletedGroup { device_type, devices, .. } = answer;
    if devices.len() != join.size {
        return Err(internal!("CompleteGroupResponse group_size doesn't match device_name list"));
    }
    // The program gives ranks to the devices of its own task; the leader does not tell those of others.
    let group = Group::new(join.key, device_type, devices.into_iter().map(|device| (device, None)).collect())?;
    match group.rank_of(&join.device.name) {
        Some(_) => Ok(group),
        None => Err(internal!("the group that the leader has formed does not contain {}", join.device.name)),
    }
}

/// Answers a task that asks for an operation.
pub(crate) async fn complete_instance(resolver: Resolver, request: CompleteInstance) -> Result<Source> {
    let key = request.group_key;
    let group = resolver.worker.collective.groups.lock().find(key);
    let group = group
        .ok_or_else(|| failed_precondition!("group {key} not found. This normally means the server has restarted"))?;
    let rank = group.rank_of(&request.device);
    let rank = rank.ok_or_else(|| failed_precondition!("group {key} does not contain device {}", request.device))?;
    resolver.instance(&group, rank, request).await
}

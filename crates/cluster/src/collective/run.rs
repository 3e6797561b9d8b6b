//! Runs the collective operations of a session: agrees with the other members, then exchanges values with them.

use crate::api::DeviceAttributes;
use crate::collective::groups::{Group, Join};
use crate::collective::instances::{CompleteInstance, Source};
use crate::collective::merge::Reduction;
use crate::collective::peers::Peers;
use crate::collective::resolve::Resolver;
use crate::collective::sections::{Sections, rings};
use crate::collective::within_task::{Arrival, Results};
use crate::collective::{ring, tree};
use crate::worker::Worker;
use crate::worker::steps::Step;
use crate::{ClusterSpec, Task};
use futures_channel::oneshot;
use futures_util::future::{Either, select};
use graph::DeviceSpec;
use op::{
    CancelToken, CollectiveKind, CollectiveRequest, Collectives, Ctx, GroupRequest, OnCollective, StepEnv,
    Subdivisions, poll_on,
};
use parking_lot::Mutex;
use status::{Code, Error, Result, cancelled, internal, invalid};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;
use tensor::Tensor;

/// Values from this size on are combined on a thread of the step, and not on the one that finds them ready.
const LARGE: usize = 64 << 10;

/// The errors of operations that take longer than their timeout.
const WAITING: &str = "Collective has timed out waiting for other workers.";
const RUNNING: &str = "Collective has timed out during execution.";

/// The collectives of a session on a worker.
pub(crate) struct SessionCollectives {
    pub worker: Weak<Worker>,
    /// The cluster of a session that brings its own, and the task in it.
    pub cluster: Option<(ClusterSpec, Task)>,
    /// Who leads if the server names no leader: the leader in the session's configuration, or the task of its master.
    pub leaders: Vec<String>,
}

impl SessionCollectives {
    fn resolver(&self) -> Result<(Resolver, Task)> {
        let worker = self.worker.upgrade().ok_or_else(|| internal!("this task has ended"))?;
        let (cluster, own) = self.cluster.clone().unwrap_or_else(|| (worker.cluster(), worker.task.clone()));
        let leaders: Vec<&str> = self.leaders.iter().map(String::as_str).collect();
        Ok((Resolver::new(&worker, cluster, &own, &leaders), own))
    }
}

/// The device of this task with a name, with the name that the session uses.
fn attributes(worker: &Worker, name: &str) -> Result<DeviceAttributes> {
    let devices = worker.device_attributes();
    let wanted = DeviceSpec::parse(name)?;
    let local = DeviceSpec { kind: wanted.kind, id: wanted.id, ..DeviceSpec::default() };
    let fits = |device: &&DeviceAttributes| DeviceSpec::parse(&device.name).is_ok_and(|spec| spec.matches(&local));
    let found = devices.iter().find(|device| device.name == name).or_else(|| devices.iter().find(fits));
    let device = found.ok_or_else(|| invalid!("{name} unknown device."))?;
    Ok(DeviceAttributes { name: name.to_string(), ..device.clone() })
}

fn join_of(worker: &Worker, device: &str, group: &GroupRequest) -> Result<Join> {
    let device = attributes(worker, device)?;
    Ok(Join { key: group.key, size: group.size, kind: device.kind.clone(), device, rank: group.rank })
}

impl Collectives for SessionCollectives {
    fn join(&self, env: &Arc<StepEnv>, device: &str, group: GroupRequest, done: OnCollective<()>) {
        let prepared = self.resolver().and_then(|(resolver, _)| {
            let join = join_of(&resolver.worker, device, &group)?;
            Ok((resolver, join, Stop::new(env)?))
        });
        let (resolver, join, (stop, stopped)) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return done(Err(error)),
        };
        let runtime = resolver.worker.runtime.clone();
        let timer = stop.after(&resolver.worker, group.timeout, WAITING);
        runtime.spawn(Box::pin(async move {
            let result = until(stopped, resolver.group(join)).await;
            drop(timer);
            stop.end();
            done(result.map(drop));
        }));
    }

    fn run(&self, ctx: &Ctx<'_>, request: CollectiveRequest, done: OnCollective<Tensor>) {
        match self.prepare(ctx, request) {
            Ok((operation, stop)) => operation.start(stop, done),
            Err(error) => done(Err(error)),
        }
    }
}

impl SessionCollectives {
    fn prepare(&self, ctx: &Ctx<'_>, request: CollectiveRequest) -> Result<(Arc<Operation>, (Stop, Stopped))> {
        let (resolver, own) = self.resolver()?;
        let join = join_of(&resolver.worker, &request.device, &request.group)?;
        let step_id = ctx.env.step_id;
        let step = resolver.worker.step(step_id)?;
        let key = format!("{}:{}:{}:{}", join.key, request.instance_key, ctx.frame, ctx.iteration);
        let operation = Operation { env: ctx.env.clone(), resolver, own, step, step_id, join, request, key };
        Ok((Arc::new(operation), Stop::new(ctx.env)?))
    }
}

/// What ends an operation early.
struct Stop {
    env: Arc<StepEnv>,
    token: CancelToken,
    sender: Arc<Mutex<Option<oneshot::Sender<Error>>>>,
}

type Stopped = oneshot::Receiver<Error>;

impl Stop {
    /// The end of the step ends the operation.
    fn new(env: &Arc<StepEnv>) -> Result<(Stop, Stopped)> {
        let (sender, stopped) = oneshot::channel();
        let sender = Arc::new(Mutex::new(Some(sender)));
        let on_cancel = sender.clone();
        let token = env.cancel.register(move |_| send(&on_cancel, cancelled!("op cancelled").derived()))?;
        Ok((Stop { env: env.clone(), token, sender }, stopped))
    }

    /// Ends the operation after this time too, unless it has ended before; gives what calls that off.
    fn after(&self, worker: &Worker, timeout: Option<Duration>, message: &'static str) -> Option<oneshot::Sender<()>> {
        let (ended, end) = oneshot::channel::<()>();
        let (sender, sleep) = (self.sender.clone(), worker.runtime.sleep(timeout?));
        worker.runtime.spawn(Box::pin(async move {
            if let Either::Left(_) = select(sleep, end).await {
                send(&sender, Error::new(Code::DeadlineExceeded, message));
            }
        }));
        Some(ended)
    }

    fn end(self) {
        self.env.cancel.deregister(self.token);
    }
}

fn send(sender: &Mutex<Option<oneshot::Sender<Error>>>, error: Error) {
    let sender = sender.lock().take();
    if let Some(sender) = sender {
        let _ = sender.send(error);
    }
}

/// The result of a future, or why it is stopped.
async fn until<T>(stopped: Stopped, future: impl Future<Output = Result<T>>) -> Result<T> {
    match select(std::pin::pin!(future), stopped).await {
        Either::Left((result, _)) => result,
        Either::Right((error, _)) => Err(error.unwrap_or_else(|_| internal!("the operation was dropped"))),
    }
}

/// One member's part in one operation.
struct Operation {
    env: Arc<StepEnv>,
    resolver: Resolver,
    own: Task,
    step: Step,
    step_id: u64,
    join: Join,
    request: CollectiveRequest,
    /// TensorFlow's key of the operation in its step.
    key: String,
}

/// What the members have agreed on.
struct Agreed {
    group: Arc<Group>,
    rank: usize,
    source: Source,
}

impl Operation {
    fn start(self: Arc<Self>, (stop, stopped): (Stop, Stopped), done: OnCollective<Tensor>) {
        if let Some(known) = self.known() {
            return self.exchange(known, stop, stopped, done);
        }
        let (worker, timeout) = (self.resolver.worker.clone(), self.request.group.timeout);
        worker.clone().runtime.spawn(Box::pin(async move {
            let timer = stop.after(&worker, timeout, WAITING);
            let mut stopped = stopped;
            let agreed = match select(std::pin::pin!(self.agree()), &mut stopped).await {
                Either::Left((result, _)) => result,
                Either::Right((error, _)) => Err(error.unwrap_or_else(|_| internal!("the operation was dropped"))),
            };
            drop(timer);
            self.exchange(agreed, stop, stopped, done);
        }));
    }

    /// What the members have agreed on in an earlier step.
    fn known(&self) -> Option<Result<Agreed>> {
        let group = match self.request.is_joined {
            true => self.resolver.worker.collective.groups.lock().lookup(self.join.key),
            false => self.resolver.known_group(&self.join)?,
        };
        let agreed = |group: Arc<Group>| {
            let (rank, instance) = self.instance(&group)?;
            let Some(source) = self.resolver.known_instance(&group, &instance) else { return Ok(None) };
            Ok(Some(Agreed { rank, source: source?, group }))
        };
        group.and_then(agreed).transpose()
    }

    async fn agree(&self) -> Result<Agreed> {
        let group = match self.request.is_joined {
            true => self.resolver.worker.collective.groups.lock().lookup(self.join.key)?,
            false => self.resolver.group(self.join.clone()).await?,
        };
        let (rank, instance) = self.instance(&group)?;
        let source = self.resolver.instance(&group, rank, instance).await;
        let source = source.inspect_err(|error| self.resolver.failed(&group, error))?;
        Ok(Agreed { group, rank, source })
    }

    /// The rank of this member, and its operation in TensorFlow's form.
    fn instance(&self, group: &Group) -> Result<(usize, CompleteInstance)> {
        let rank = group.rank_of(&self.join.device.name);
        let rank = rank.ok_or_else(|| internal!("{} is not in group {}", self.join.device.name, group.key))?;
        let request = &self.request;
        let kind = match request.kind {
            CollectiveKind::Reduce { .. } => 0,
            CollectiveKind::Broadcast { .. } => 1,
            CollectiveKind::Gather => 2,
            CollectiveKind::AllToAll => 4,
        };
        let instance = CompleteInstance {
            name: request.name.clone(),
            kind,
            dtype: request.dtype,
            shape: request.shape.clone(),
            group_key: group.key,
            group_size: group.members.len() as i32,
            instance_key: request.instance_key,
            device_type: group.kind.clone(),
            subdiv_offsets: match &request.subdivisions {
                Subdivisions::Offsets(offsets) => offsets.clone(),
                Subdivisions::AtMost(_) => Vec::new(),
            },
            device: self.join.device.name.clone(),
            is_source: matches!(request.kind, CollectiveKind::Broadcast { is_source: true }),
            step_id: 0,
        };
        Ok((rank, instance))
    }

    /// Exchanges values with the other members, on the threads of the step.
    fn exchange(self: Arc<Self>, agreed: Result<Agreed>, stop: Stop, stopped: Stopped, done: OnCollective<Tensor>) {
        let agreed = match agreed {
            Ok(agreed) => agreed,
            Err(error) => return self.end(None, stop, Err(error), done),
        };
        let timer = stop.after(&self.resolver.worker, self.request.group.timeout, RUNNING);
        let is_large = self.request.input.as_ref().is_some_and(|input| input.byte_size() >= LARGE);
        let (spawn, group) = (self.env.spawn.clone(), agreed.group.clone());
        let poll = move || {
            let operation = self.clone();
            let (mut stopped, mut work) = (stopped, Box::pin(async move { operation.combine(agreed).await }));
            let poll = move |cx: &mut std::task::Context<'_>| {
                if let Poll::Ready(Ok(error)) = Pin::new(&mut stopped).poll(cx) {
                    return Poll::Ready(Err(error));
                }
                work.as_mut().poll(cx)
            };
            let spawn = self.env.spawn.clone();
            poll_on(spawn, poll, move |result| {
                drop(timer);
                self.end(Some(&group), stop, result, done);
            });
        };
        match is_large {
            true => spawn(Box::new(poll)),
            false => poll(),
        }
    }

    /// Ends the operation. A failure is told to the other members, unless the step has ended: they would wait in vain.
    fn end(&self, group: Option<&Arc<Group>>, stop: Stop, result: Result<Tensor>, done: OnCollective<Tensor>) {
        if let Err(error) = &result {
            if let Some(group) = group {
                self.resolver.failed(group, error);
            }
            if !self.env.cancel.is_cancelled() {
                self.step.abort_collectives(aborted_by(error));
            }
        }
        stop.end();
        done(result);
    }

    async fn combine(&self, agreed: Agreed) -> Result<Tensor> {
        let members = &agreed.group.members;
        match members.iter().all(|member| member.task == self.own) {
            true => self.combine_within_task(agreed).await,
            false => self.send_and_receive(agreed).await,
        }
    }

    /// Combines the values of a group within this task.
    async fn combine_within_task(&self, Agreed { group, rank, source }: Agreed) -> Result<Tensor> {
        let arrived = self.step.operations.arrive(&self.key, rank, group.members.len(), self.request.input.clone())?;
        let results = match arrived {
            Arrival::Later(result) => result.await.unwrap_or_else(|_| Err(internal!("the members have gone")))?,
            Arrival::Last(combining) => {
                let results = self.results(&group, source, &combining.values);
                combining.finish(&results);
                results?
            }
        };
        let own = results.get(rank).or(results.first()).cloned();
        own.ok_or_else(|| internal!("the operation has no result"))
    }

    /// The result for all members, or for each.
    fn results(&self, group: &Group, source: Source, values: &[Option<Tensor>]) -> Result<Results> {
        let given: Vec<&Tensor> = values.iter().flatten().collect();
        let results = match self.request.kind {
            CollectiveKind::Reduce { .. } => vec![self.reduce_within(group, &given)?],
            CollectiveKind::Broadcast { .. } => {
                let source = usize::try_from(source).ok().and_then(|source| values.get(source).cloned().flatten());
                vec![source.ok_or_else(|| internal!("the source of the broadcast has no value"))?]
            }
            CollectiveKind::Gather => {
                let given: Vec<Tensor> = given.into_iter().cloned().collect();
                vec![ring::concat(&given, &self.request.shape)?]
            }
            CollectiveKind::AllToAll => self.slices(group, &given)?,
        };
        Ok(Arc::new(results))
    }

    /// Merges values in the order of a ring over the devices.
    fn reduce_within(&self, group: &Group, values: &[&Tensor]) -> Result<Tensor> {
        let (input, members) = (values[0], values.len());
        let rings = rings(&self.request.subdivisions, &group.devices_by_task(), input.byte_size())?;
        let sections = Sections::aligned(input.elements(), input.dtype().size(), members * rings.len());
        let mut output = Tensor::scratch_of(input.dtype(), input.shape())?;
        for section in 0..members * rings.len() {
            let (ring, first) = (&rings[section % rings.len()], section / rings.len());
            let in_order: Vec<&Tensor> = (0..members).map(|next| values[ring[(first + next) % members]]).collect();
            self.reduction(members).merge_all(&self.env.pool, &in_order, &mut output, sections.range(section))?;
        }
        Ok(output)
    }

    /// The slices that each member gets, by rank: one of each value, in the order of the ranks that the program gave.
    fn slices(&self, group: &Group, values: &[&Tensor]) -> Result<Vec<Tensor>> {
        let members = values.len();
        let shape = &self.request.shape;
        self.check_slices(members)?;
        let each = shape.elements() / members;
        let result = |to: usize| {
            let mut slices = vec![None; members];
            for (from, value) in values.iter().enumerate() {
                slices[group.members[from].rank] = Some(value.slice_elements(to * each, [each])?);
            }
            ring::concat(&slices.into_iter().flatten().collect::<Vec<_>>(), shape)
        };
        (0..members).map(result).collect()
    }

    fn check_slices(&self, members: usize) -> Result<()> {
        match self.request.shape.dims().first() {
            Some(&first) if first == members => Ok(()),
            first => Err(invalid!(
                "input to all-to-all first dimension size ({}) must be the same as the group size ({members})",
                first.unwrap_or(&0)
            )),
        }
    }

    fn reduction(&self, members: usize) -> Reduction {
        match self.request.kind {
            CollectiveKind::Reduce { merge, divide } => Reduction { merge, divisor: divide.then_some(members) },
            _ => Reduction { merge: op::Merge::Add, divisor: None },
        }
    }

    /// Combines the values of a group over several tasks.
    async fn send_and_receive(&self, Agreed { group, rank, source }: Agreed) -> Result<Tensor> {
        let members = group.members.len();
        let peers = Peers {
            worker: self.resolver.worker.clone(),
            cluster: self.resolver.cluster.clone(),
            own: self.own.clone(),
            step: self.step.clone(),
            step_id: self.step_id,
            group,
            rank,
            key: self.key.clone(),
            dtype: self.request.dtype,
        };
        let input = || self.request.input.clone().ok_or_else(|| internal!("the member has no value"));
        match self.request.kind {
            CollectiveKind::Reduce { .. } => {
                let (input, tasks) = (input()?, peers.group.devices_by_task());
                let rings = rings(&self.request.subdivisions, &tasks, input.byte_size())?;
                ring::reduce(&peers, &rings, &self.reduction(members), &self.env.pool, input).await
            }
            CollectiveKind::Gather => {
                let ring: Vec<usize> = (0..members).collect();
                ring::gather(&peers, &ring, input()?, &self.request.shape).await
            }
            CollectiveKind::Broadcast { .. } => {
                let source = usize::try_from(source).map_err(|_| internal!("the broadcast has no source"))?;
                tree::broadcast(&peers, source, self.request.input.clone(), &self.request.shape).await
            }
            CollectiveKind::AllToAll => {
                self.check_slices(members)?;
                ring::all_to_all(&peers, &input()?).await
            }
        }
    }
}

/// What the other members of an operation hear when one of them fails.
fn aborted_by(error: &Error) -> Error {
    let prefix = "Collective ops is aborted by: ";
    let message = match error.message.contains(prefix) {
        true => error.message.clone(),
        false => format!("{prefix}{}", error.message),
    };
    Error { message, ..error.clone() }.derived()
}

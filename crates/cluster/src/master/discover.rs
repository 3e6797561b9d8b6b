//! Finds the tasks and devices of a session. A session begins when all its tasks have answered.

use crate::api::{DeviceAttributes, WorkerClient, from_task};
use crate::{ClusterSpec, SessionConfig, Task, Worker};
use futures_util::future::{Either, select, try_join_all};
use graph::DeviceSpec;
use parking_lot::Mutex;
use status::{Code, Error, Result, invalid};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// How often the log names the tasks that have not answered.
const REPORT: Duration = Duration::from_secs(10);
/// A task that does not answer is asked again after this pause, which is doubled with each attempt.
const FIRST_RETRY: Duration = Duration::from_millis(100);
/// The longest pause between two attempts.
const LONGEST_RETRY: Duration = Duration::from_secs(1);
/// A session is given up this long before its time is over, or a tenth of its time before: the client's clock began
/// before it was connected, and an error of its own would not name the missing tasks.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// A task of a session and its client.
pub(crate) type Target = (Task, Arc<dyn WorkerClient>);

/// The devices of a session, the master's own first, and their tasks. Waits for tasks that are not up yet: as long as the
/// session's timeout allows; without one, until the future is dropped.
pub(crate) async fn devices(
    worker: &Arc<Worker>,
    config: &SessionConfig,
) -> Result<(Vec<DeviceAttributes>, Vec<Target>)> {
    let targets = targets(worker, config, &own_task(worker, config)?)?;
    let cluster = config.cluster.clone().unwrap_or_else(|| worker.cluster());
    let waiting = Waiting { worker, cluster, renames: config.cluster.is_some(), missing: Mutex::default() };
    let limit = config.step_timeout.map(|time| worker.runtime.sleep(time - (time / 10).min(ANSWER_TIME)));
    let limit = limit.unwrap_or_else(|| Box::pin(std::future::pending()));
    let found = match select(pin!(waiting.all(&targets)), limit).await {
        Either::Left((found, _)) => found?,
        Either::Right(_) => return Err(waiting.timed_out(config.step_timeout.unwrap_or_default(), targets.len())),
    };
    Ok((found, targets))
}

/// The tasks that have not answered yet, with the reason.
struct Waiting<'a> {
    worker: &'a Arc<Worker>,
    cluster: ClusterSpec,
    /// The client brought its own cluster, in which tasks have other names than those they were started with.
    renames: bool,
    missing: Mutex<BTreeMap<Task, String>>,
}

impl Waiting<'_> {
    /// The devices of all tasks; meanwhile the log names the tasks that have not answered.
    async fn all(&self, targets: &[Target]) -> Result<Vec<DeviceAttributes>> {
        let answers = pin!(try_join_all(targets.iter().map(|target| self.ask(target))));
        match select(answers, pin!(self.report())).await {
            Either::Left((answers, _)) => Ok(answers?.into_iter().flatten().collect()),
            Either::Right((never, _)) => match never {},
        }
    }

    /// The devices of a task, as soon as it answers.
    async fn ask(&self, (task, client): &Target) -> Result<Vec<DeviceAttributes>> {
        let silent = format!("Task {task} at {} does not answer: no answer yet", self.address(task));
        self.missing.lock().insert(task.clone(), silent);
        let mut pause = FIRST_RETRY;
        loop {
            match client.get_status().await {
                Ok(devices) => {
                    self.check_names(task, &devices)?;
                    self.missing.lock().remove(task);
                    return Ok(devices.into_iter().map(|device| renamed(device, task)).collect());
                }
                Err(error) if error.code == Code::Unavailable => {
                    let reason = error.message.lines().next().unwrap_or_default().to_string();
                    self.missing.lock().insert(task.clone(), reason);
                }
                Err(error) if error.code == Code::Unimplemented => return Err(self.not_a_task(task, error)),
                Err(error) => return Err(from_task(error, &task.to_string())),
            }
            self.worker.runtime.sleep(pause).await;
            pause = (pause * 2).min(LONGEST_RETRY);
        }
    }

    /// Waiting does not help when the address belongs to another task.
    fn check_names(&self, task: &Task, devices: &[DeviceAttributes]) -> Result<()> {
        if self.renames {
            return Ok(());
        }
        let of = |device: &DeviceAttributes| DeviceSpec::parse(&device.name).ok().and_then(|s| Task::of_device(&s));
        match devices.iter().filter_map(of).find(|found| found != task) {
            None => Ok(()),
            Some(found) => Err(invalid!(
                "The address {} of {task} belongs to another task, which answers as {found}",
                self.address(task)
            )),
        }
    }

    /// Nor when it belongs to a server that is not a TensorFlow server.
    fn not_a_task(&self, task: &Task, error: Error) -> Error {
        let reason = if error.message.is_empty() { "it does not know GetStatus" } else { &error.message };
        let text = format!("The address {} of {task} is not that of a TensorFlow server: {reason}", self.address(task));
        Error::new(error.code, text)
    }

    fn address(&self, task: &Task) -> &str {
        self.cluster.address(task).unwrap_or("")
    }

    /// Logs the tasks that have not answered, at regular intervals.
    async fn report(&self) -> Infallible {
        loop {
            self.worker.runtime.sleep(REPORT).await;
            for (task, reason) in self.missing.lock().iter() {
                tracing::info!("CreateSession still waiting for response from worker: {task}: {reason}");
            }
        }
    }

    fn timed_out(&self, time: Duration, tasks: usize) -> Error {
        let missing = self.missing.lock();
        let reasons: Vec<&str> = missing.values().map(String::as_str).collect();
        let text = format!(
            "CreateSession: {} of {tasks} tasks did not answer within {time:?}:\n{}",
            reasons.len(),
            reasons.join("\n")
        );
        Error::new(Code::DeadlineExceeded, text)
    }
}

/// The master's own task: in a cluster that the client brings, the one at the address that the client called.
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
        Some(task) if task == *worker.task() => Err(invalid!(
            "The ClusterSpec names the job and task index to be the same names that were provided when the server \
             booted. This is currently not allowed. Job: {}, task index: {}",
            task.job,
            task.index
        )),
        Some(task) => Ok(task),
        None => Err(invalid!(
            "The master (current machine) is not included in the provided cluster_def. Master target: '{}'. \
             ClusterDef: {cluster}",
            config.target
        )),
    }
}

/// The tasks that take part: the master's own, and those that match a device filter.
fn targets(worker: &Arc<Worker>, config: &SessionConfig, own: &Task) -> Result<Vec<Target>> {
    let cluster = config.cluster.clone().unwrap_or_else(|| worker.cluster());
    let filters = config.device_filters.iter().map(|filter| DeviceSpec::parse(filter)).collect::<Result<Vec<_>>>()?;
    let mut targets = vec![(own.clone(), worker.client())];
    for task in cluster.tasks().filter(|task| task != own) {
        if filters.is_empty() || filters.iter().any(|filter| filter.matches(&task.spec())) {
            let client = worker.link(&cluster, &task)?;
            targets.push((task, client));
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

//! Steps in progress: where their tensors wait, and how those of other tasks are fetched.

use crate::api::{RecvTensor, from_task};
use crate::worker::Worker;
use crate::worker::buffers::Buffers;
use crate::{ClusterSpec, Task};
use exec::LocalRendezvous;
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{Either, Shared, select};
use graph::{DeviceSpec, RendezvousKey};
use op::{Cancel, Opening, Received, Rendezvous, Stored};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Error, Result, aborted, internal};
use std::collections::VecDeque;
use std::sync::Arc;
use tensor::Tensor;

/// How many finished steps are remembered, so that late callers get an answer.
const REMEMBERED: usize = 4096;

/// What every step holds that somebody has mentioned and nobody has ended.
#[derive(Default)]
pub(crate) struct Steps {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    running: FxHashMap<u64, Running>,
    ended: VecDeque<u64>,
}

/// Where what a step hands to others waits for them.
#[derive(Clone, Default)]
pub(crate) struct Step {
    pub tensors: Arc<LocalRendezvous>,
    pub buffers: Arc<Buffers>,
}

impl Step {
    pub fn abort(&self, error: Error) {
        self.tensors.abort(error.clone());
        self.buffers.abort(error);
    }
}

#[derive(Default)]
struct Running {
    step: Step,
    /// The run, if it comes in several calls: then it goes on between them.
    partial: Option<PartialRun>,
}

impl Running {
    /// Whoever still waits for its tensors and buffers gets an error, and so do ops that wait for something else.
    fn end(self, step_id: u64) {
        let over = aborted!("Step {step_id} has ended").derived();
        self.step.tensors.abort(over.clone());
        self.step.buffers.abort(internal!("Delete called on non-empty BufRendezvous"));
        if let Some(partial) = self.partial {
            partial.cancel.cancel(over);
        }
    }
}

/// A run of which some calls are still to come.
#[derive(Clone)]
pub(crate) struct PartialRun {
    pub session: String,
    pub cancel: Arc<Cancel>,
    /// How it ended.
    pub end: Shared<oneshot::Receiver<Result<()>>>,
}

impl Steps {
    /// A step; tensors may be asked for before it is started here.
    pub fn step(&self, step_id: u64) -> Result<Step> {
        Ok(self.inner.lock().running(step_id)?.step.clone())
    }

    /// The run of a step that comes in several calls; to the first of them also what its end is to be told to.
    pub fn partial(&self, step_id: u64, session: &str) -> Result<(PartialRun, Option<oneshot::Sender<Result<()>>>)> {
        let mut inner = self.inner.lock();
        let running = inner.running(step_id)?;
        if let Some(partial) = &running.partial {
            return Ok((partial.clone(), None));
        }
        let (tell, end) = oneshot::channel();
        let partial = PartialRun { session: session.to_string(), cancel: Arc::default(), end: end.shared() };
        Ok((running.partial.insert(partial).clone(), Some(tell)))
    }

    /// Ends a step.
    pub fn forget(&self, step_id: u64) {
        let running = self.inner.lock().remove(step_id);
        if let Some(running) = running {
            running.end(step_id);
        }
    }

    /// Ends the steps of a session that go on without a call.
    pub fn forget_partial(&self, session: &str) {
        let steps: Vec<(u64, Running)> = {
            let mut inner = self.inner.lock();
            let is_over =
                |running: &Running| running.partial.as_ref().is_some_and(|partial| partial.session == session);
            let over: Vec<u64> =
                inner.running.iter().filter(|(_, running)| is_over(running)).map(|(&id, _)| id).collect();
            over.into_iter().filter_map(|id| Some((id, inner.remove(id)?))).collect()
        };
        steps.into_iter().for_each(|(step_id, running)| running.end(step_id));
    }

    pub fn abort_all(&self, error: &Error) {
        let running: Vec<_> = self.inner.lock().running.values().map(|running| running.step.clone()).collect();
        running.iter().for_each(|step| step.abort(error.clone()));
    }
}

impl Inner {
    fn running(&mut self, step_id: u64) -> Result<&mut Running> {
        if !self.running.contains_key(&step_id) && self.ended.contains(&step_id) {
            return Err(aborted!("Step {step_id} has ended on this task"));
        }
        Ok(self.running.entry(step_id).or_default())
    }

    fn remove(&mut self, step_id: u64) -> Option<Running> {
        if self.ended.len() == REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back(step_id);
        self.running.remove(&step_id)
    }
}

impl Worker {
    /// Puts a tensor where another task that asks for this key of this step finds it.
    pub fn offer(&self, step_id: u64, key: &str, tensor: Tensor) -> Result<()> {
        self.steps.step(step_id)?.tensors.send(key, tensor, false)
    }

    /// How many steps somebody has mentioned here and nobody has ended.
    #[cfg(test)]
    pub(crate) fn steps_under_way(&self) -> usize {
        self.steps.inner.lock().running.len()
    }

    pub(crate) fn step(&self, step_id: u64) -> Result<Step> {
        self.steps.step(step_id)
    }
}

/// The rendezvous of a step as its executor sees it: keys of other tasks are fetched from there.
pub(crate) struct StepRendezvous {
    pub local: Arc<LocalRendezvous>,
    pub buffers: Arc<Buffers>,
    pub worker: Arc<Worker>,
    pub cluster: ClusterSpec,
    pub step_id: u64,
    pub own: Task,
}

impl Rendezvous for StepRendezvous {
    fn send(&self, key: &str, tensor: Tensor, dead: bool) -> Result<()> {
        self.local.send(key, tensor, dead)
    }

    fn recv(&self, key: &str, done: Box<dyn FnOnce(Result<Received>) + Send>) {
        match self.far(key) {
            Ok(None) => self.local.recv(key, done),
            Ok(Some(task)) => self.fetch(task, key, done),
            Err(error) => done(Err(error)),
        }
    }

    fn offer(&self, key: &str, stored: Arc<dyn Stored>) -> Result<()> {
        self.local.offer(key, stored)
    }

    fn open(&self, key: &str, done: Opening) {
        match self.far(key) {
            Ok(None) => self.local.open(key, done),
            Ok(Some(task)) => self.pull(task, key, done),
            Err(error) => done(Err(error)),
        }
    }

    fn abort(&self, error: Error) {
        self.buffers.abort(error.clone());
        self.local.abort(error);
    }
}

impl StepRendezvous {
    /// The task that sends this key, if it is not this one.
    fn far(&self, key: &str) -> Result<Option<Task>> {
        let parsed = RendezvousKey::parse(key)?;
        if parsed.send_device.starts_with(&format!("{}/", self.own)) {
            return Ok(None);
        }
        let spec = DeviceSpec::parse(parsed.send_device)?;
        let task = Task::of_device(&spec).ok_or_else(|| RendezvousKey::invalid(key))?;
        Ok((task != self.own).then_some(task))
    }

    /// Asks the other task. The answer passes through the local rendezvous, so that an abort ends the wait,
    /// and with it the call.
    fn fetch(&self, task: Task, key: &str, done: Box<dyn FnOnce(Result<Received>) + Send>) {
        let link = match self.worker.link(&self.cluster, &task) {
            Ok(link) => link,
            Err(error) => return done(Err(error)),
        };
        let (over, gone) = oneshot::channel::<()>();
        let reader = move |received| {
            drop(over);
            done(received);
        };
        self.local.recv(key, Box::new(reader));
        let (local, worker) = (self.local.clone(), self.worker.clone());
        let request = RecvTensor { step_id: self.step_id, key: key.to_string() };
        self.worker.runtime.spawn(Box::pin(async move {
            let start = worker.transfers.start();
            let Either::Left((answer, _)) = select(link.recv_tensor(request.clone()), gone).await else { return };
            match answer {
                Ok((tensor, dead)) => {
                    worker.counters.came(&request.key, tensor.byte_size());
                    if let Some(start) = start {
                        worker.transfers.note(request.step_id, &request.key, tensor.byte_size(), start);
                    }
                    drop(local.send(&request.key, tensor, dead));
                }
                Err(error) => local.abort(from_task(error, &task.to_string())),
            }
        }));
    }
}

//! The steps that are in progress on a worker, and where their tensors and buffers wait for their receivers.

use crate::collective::within_task::TaskOperations;
use crate::worker::Worker;
use crate::worker::buffers::Buffers;
use exec::LocalRendezvous;
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::Shared;
use op::{Cancel, Rendezvous};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Error, Result, aborted, internal};
use std::collections::VecDeque;
use std::sync::Arc;
use tensor::Tensor;

/// How many ended steps are remembered, so that late calls for them fail at once instead of waiting.
const REMEMBERED: usize = 4096;

/// How many ended steps keep buffers that other tasks have not requested yet, and how many the reason why their
/// collective operations failed.
const KEPT: usize = 16;

/// The steps that a call has named and that have not ended.
#[derive(Default)]
pub(crate) struct Steps {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    running: FxHashMap<u64, Running>,
    ended: VecDeque<u64>,
    /// Ended steps with buffers that other tasks have not requested yet.
    kept: VecDeque<(u64, Arc<Buffers>)>,
    /// Ended steps whose collective operations failed, and why.
    failed: VecDeque<(u64, Error)>,
}

/// The rendezvous and the buffers of one step.
#[derive(Clone, Default)]
pub(crate) struct Step {
    pub tensors: Arc<LocalRendezvous>,
    pub buffers: Arc<Buffers>,
    pub operations: Arc<TaskOperations>,
}

impl Step {
    pub fn abort(&self, error: Error) {
        self.tensors.abort(error.clone());
        self.abort_collectives(error);
    }

    /// Fails the members of collective operations that wait for something of this task.
    pub fn abort_collectives(&self, error: Error) {
        self.operations.abort(error.clone());
        self.buffers.abort(error);
    }
}

#[derive(Default)]
struct Running {
    step: Step,
    /// The run, if it is a partial run: it continues between its calls.
    partial: Option<PartialRun>,
}

impl Running {
    /// Fails the receivers that still wait for tensors and buffers of the step, and the ops that wait for something else.
    fn end(self, step_id: u64) {
        let over = aborted!("Step {step_id} has ended").derived();
        self.step.tensors.abort(over.clone());
        self.step.operations.abort(over.clone());
        if !self.step.buffers.has_buffers() {
            self.step.buffers.abort(internal!("Delete called on non-empty BufRendezvous"));
        }
        if let Some(partial) = self.partial {
            partial.cancel.cancel(over);
        }
    }
}

/// A run that is made of several calls.
#[derive(Clone)]
pub(crate) struct PartialRun {
    pub session: String,
    pub cancel: Arc<Cancel>,
    /// Its result.
    pub end: Shared<oneshot::Receiver<Result<()>>>,
}

impl Steps {
    /// A step, which may not have started here: other tasks may ask for its tensors before.
    pub fn step(&self, step_id: u64) -> Result<Step> {
        Ok(self.inner.lock().running(step_id)?.step.clone())
    }

    /// The buffers of a step. It may not have started here, or it has ended and other tasks are still at its end.
    pub fn buffers(&self, step_id: u64) -> Result<Arc<Buffers>> {
        let mut inner = self.inner.lock();
        if let Some((_, buffers)) = inner.kept.iter().find(|(kept, _)| *kept == step_id) {
            return Ok(buffers.clone());
        }
        if let Some((_, error)) = inner.failed.iter().find(|(failed, _)| *failed == step_id) {
            return Err(error.clone());
        }
        Ok(inner.running(step_id)?.step.buffers.clone())
    }

    /// Allows that a step which has ended is run again. Steps with collective operations are, when they have failed: all
    /// tasks must use the same number.
    pub fn allow_again(&self, step_id: u64) {
        let mut inner = self.inner.lock();
        if inner.running.contains_key(&step_id) {
            return;
        }
        inner.ended.retain(|ended| *ended != step_id);
        inner.failed.retain(|(failed, _)| *failed != step_id);
        inner.kept.retain(|(kept, _)| *kept != step_id);
    }

    /// The partial run of a step. The first call also gets the sender for the result of the run, and must start it.
    pub fn partial(&self, step_id: u64, session: &str) -> Result<(PartialRun, Option<oneshot::Sender<Result<()>>>)> {
        let mut inner = self.inner.lock();
        let running = inner.running(step_id)?;
        if let Some(partial) = &running.partial {
            return Ok((partial.clone(), None));
        }
        let (result, end) = oneshot::channel();
        let partial = PartialRun { session: session.to_string(), cancel: Arc::default(), end: end.shared() };
        Ok((running.partial.insert(partial).clone(), Some(result)))
    }

    /// Ends a step.
    pub fn forget(&self, step_id: u64) {
        let running = self.inner.lock().remove(step_id);
        if let Some(running) = running {
            running.end(step_id);
        }
    }

    /// Ends the partial runs of a session.
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

    /// Fails those who wait for buffers whose keys begin like this, in all steps.
    pub fn fail_consumers(&self, prefix: &str, error: &Error) {
        let running: Vec<_> = self.inner.lock().running.values().map(|running| running.step.buffers.clone()).collect();
        running.iter().for_each(|buffers| buffers.fail_consumers(prefix, error));
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
        let removed = self.running.remove(&step_id)?;
        let buffers = &removed.step.buffers;
        if buffers.has_buffers() {
            self.kept.retain(|(_, kept)| kept.has_buffers());
            if self.kept.len() == KEPT {
                self.kept.pop_front();
            }
            self.kept.push_back((step_id, buffers.clone()));
        } else if let Some(error) = buffers.failure() {
            if self.failed.len() == KEPT {
                self.failed.pop_front();
            }
            self.failed.push_back((step_id, error));
        }
        Some(removed)
    }
}

impl Worker {
    /// Sends a tensor under a key of a step, for another task to receive.
    pub fn offer(&self, step_id: u64, key: &str, tensor: Tensor) -> Result<()> {
        self.steps.step(step_id)?.tensors.send(key, tensor, false)
    }

    /// How many steps a call has named and have not ended.
    #[cfg(test)]
    pub(crate) fn steps_under_way(&self) -> usize {
        self.steps.inner.lock().running.len()
    }

    /// Allows that a step which has ended is run again.
    pub(crate) fn allow_again(&self, step_id: u64) {
        self.steps.allow_again(step_id);
    }

    pub(crate) fn step(&self, step_id: u64) -> Result<Step> {
        self.steps.step(step_id)
    }
}

//! Sends the ends of steps together with the next run.
//!
//! A master tells every task that took part in a step when the step has ended. As a call of its own, that would be a third
//! of the cost of a short step. Tasks that accept it, which they say in their answers, receive the ends of earlier steps
//! with the next RunGraph. If no run follows soon, they receive many of them in one CleanupGraph.

use crate::Runtime;
use crate::api::{RunGraph, RunGraphAnswer, WorkerClient};
use parking_lot::Mutex;
use status::{Code, Result};
use std::sync::Arc;
use std::time::Duration;

/// How long the end of a step waits for the next run.
const WAIT: Duration = Duration::from_millis(20);
/// The largest number of steps in one call: on the wire they are a header, which must stay short.
const MAX_BATCH: usize = 64;
/// The largest number of steps that are stored for a task that does not answer.
const MAX_STORED: usize = 4096;

/// The steps that have ended without the task's knowledge.
pub(crate) struct StepEnds {
    client: Arc<dyn WorkerClient>,
    runtime: Arc<dyn Runtime>,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    steps: Vec<u64>,
    /// A flush is scheduled.
    scheduled: bool,
}

impl List {
    /// Adds a step; returns whether the caller must schedule a flush.
    fn add(&mut self, step_id: u64) -> bool {
        if self.steps.len() == MAX_STORED {
            self.steps.remove(0); // the task has not answered for long
        }
        self.steps.push(step_id);
        !std::mem::replace(&mut self.scheduled, true)
    }
}

impl StepEnds {
    pub fn new(client: Arc<dyn WorkerClient>, runtime: Arc<dyn Runtime>) -> Arc<StepEnds> {
        Arc::new(StepEnds { client, runtime, list: Mutex::default() })
    }

    /// Runs a graph, and sends the ends of earlier steps with it.
    pub async fn run_graph(&self, request: RunGraph) -> Result<RunGraphAnswer> {
        let mut sending = self.take();
        let answer = self.client.run_graph_after(&sending.steps, request).await?;
        sending.confirm();
        answer
    }

    /// Tells the task that a step has ended, now or with the next run.
    pub async fn end_step(self: &Arc<Self>, step_id: u64) -> Result<()> {
        if !self.client.features().step_ends {
            return self.client.cleanup_graph(step_id).await;
        }
        let is_first = self.list.lock().add(step_id);
        if is_first {
            // Not part of this future: the flush also sends the steps that others add.
            self.runtime.spawn(Box::pin(self.clone().flush_later()));
        }
        Ok(())
    }

    /// Sends everything now, if the task answers.
    pub async fn flush(&self) {
        loop {
            let sending = self.take();
            if sending.steps.is_empty() || !self.send(sending).await {
                return;
            }
        }
    }

    /// Sends what no run has sent within `WAIT`. Stops when nothing is left, or when the task does not answer: then the
    /// next run sends it, or the flush after the next step that ends.
    async fn flush_later(self: Arc<Self>) {
        while let Some(newest) = self.newest() {
            self.runtime.sleep(WAIT).await;
            while self.contains(newest) {
                let sending = self.take();
                if !self.send(sending).await {
                    self.list.lock().scheduled = false;
                    return;
                }
            }
        }
    }

    /// The step that was added last. If there is none, the flush that asks is no longer scheduled.
    fn newest(&self) -> Option<u64> {
        let mut list = self.list.lock();
        list.scheduled = !list.steps.is_empty();
        list.steps.last().copied()
    }

    fn contains(&self, step_id: u64) -> bool {
        self.list.lock().steps.contains(&step_id)
    }

    /// Takes as many steps as one call can send.
    fn take(&self) -> Sending<'_> {
        let mut list = self.list.lock();
        let rest = list.steps.len().saturating_sub(MAX_BATCH);
        Sending { ends: self, steps: list.steps.split_off(rest) }
    }

    /// Sends steps in a call of their own; returns whether the task answered.
    async fn send(&self, mut sending: Sending<'_>) -> bool {
        if sending.steps.is_empty() {
            return true;
        }
        match self.client.cleanup_graphs(&sending.steps).await {
            Err(error) if error.code == Code::Unavailable => {
                tracing::debug!("the ends of {} steps could not be sent: {error}", sending.steps.len());
                false
            }
            _ => {
                sending.confirm();
                true
            }
        }
    }
}

/// Steps that are being sent. They return to the list if this is dropped before the task has answered.
struct Sending<'a> {
    ends: &'a StepEnds,
    steps: Vec<u64>,
}

impl Sending<'_> {
    /// The task has answered. If it does not accept the ends of steps, another process has taken its place, which does
    /// not know the steps either.
    fn confirm(&mut self) {
        self.steps.clear();
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if !self.steps.is_empty() {
            self.ends.list.lock().steps.append(&mut self.steps);
        }
    }
}

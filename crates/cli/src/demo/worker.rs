//! One worker of the demo: its graph, its session, and its share of the steps.

use super::checkpoint::Checkpoints;
use super::digits::Digits;
use super::events::Events;
use super::model::Model;
use super::traffic::{Counters, Counts};
use super::{Args, TRAINING};
use anyhow::Result;
use flowgrid::prelude::*;
use flowgrid::{RunMetadata, Task};
use indicatif::ProgressBar;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A client of one worker task.
pub struct Worker {
    pub graph: Graph,
    pub model: Model,
    session: Session,
    counters: Counters,
    batch: usize,
    /// Its event file for TensorBoard.
    events: Option<Mutex<Events>>,
    checkpoints: Option<Checkpoints>,
}

/// The result of a worker's steps.
#[derive(Default)]
pub struct Report {
    pub losses: Vec<f32>,
    /// The error that ended its training early.
    pub error: Option<Error>,
    /// The metadata of one of its steps, for `--trace`.
    pub trace: Option<RunMetadata>,
}

/// The step of each worker that `--trace` shows. The graph is registered and all tasks are connected by then.
const TRACED: usize = 10;

impl Worker {
    /// Builds the graph and opens the session. The variables are placed on the ps among `tasks`, the rest on `task`.
    pub fn open(target: &str, task: Option<&Task>, tasks: &[Task], args: &Args) -> Result<Worker> {
        let graph = Graph::new();
        let servers = tasks.iter().filter(|task| task.job == "ps").count();
        let model = Model::build(&graph, task, servers, args.seed as i64, args.learning_rate)?;
        let counters = Counters::new(&graph, tasks);
        let session = Session::with_config(target, &graph, SessionConfig::default())?;
        let checkpoints = args.checkpoint_dir.as_deref().map(|folder| Checkpoints::new(&graph, folder)).transpose()?;
        Ok(Worker { graph, model, session, counters, batch: args.batch, events: None, checkpoints })
    }

    /// The same worker with an event file.
    pub fn with_events(self, events: Events) -> Worker {
        Worker { events: Some(Mutex::new(events)), ..self }
    }

    /// Connects the session, which waits until all tasks answer.
    pub fn connect(&self) -> Result<()> {
        self.session.list_devices()?;
        Ok(())
    }

    /// Restores the newest checkpoint and returns its path, or initializes all variables if there is none.
    pub fn initialize(&self) -> Result<Option<String>> {
        let restored = self.checkpoints.as_ref().map_or(Ok(None), |checkpoints| checkpoints.restore(&self.session))?;
        if restored.is_none() {
            self.session.execute(&global_variables_initializer(&self.graph))?;
        }
        Ok(restored)
    }

    /// Writes a checkpoint and returns its path, if `--checkpoint-dir` is given.
    pub fn save(&self) -> Result<Option<String>> {
        self.checkpoints.as_ref().map(|checkpoints| checkpoints.save(&self.session, &self.model.step)).transpose()
    }

    /// The counters of all tasks.
    pub fn counts(&self) -> Counts {
        self.counters.read(&self.session)
    }

    /// Runs steps until all are done, one fails, or `stopping` is set.
    pub fn train(
        &self,
        digits: &Digits,
        steps: impl ExactSizeIterator<Item = usize>,
        args: &Args,
        bar: &ProgressBar,
        stopping: &AtomicBool,
    ) -> Report {
        let (mut report, begin) = (Report::default(), Instant::now());
        let traced = args.trace.as_ref().map(|_| TRACED.min(steps.len()));
        for step in steps {
            if stopping.load(Ordering::Relaxed) {
                break;
            }
            let trace = traced == Some(report.losses.len() + 1);
            let result = self.step(digits, step, trace).and_then(|(loss, metadata)| {
                report.losses.push(loss);
                report.trace = report.trace.take().or(trace.then_some(metadata));
                self.write_event(loss, report.losses.len())
            });
            match result {
                Ok(()) => {}
                Err(error) => {
                    bar.abandon_with_message("lost");
                    report.error = Some(error);
                    return report;
                }
            }
            let rate = report.losses.len() as f64 / begin.elapsed().as_secs_f64();
            let loss = report.losses.last().copied().unwrap_or_default();
            bar.set_message(format!("{rate:.0} steps/s  {:.0} digits/s  loss {loss:.4}", rate * args.batch as f64));
            bar.inc(1);
        }
        report.error = self.events.as_ref().and_then(|events| lock(events).close().err());
        bar.finish();
        report
    }

    fn step(&self, digits: &Digits, step: usize, trace: bool) -> Result<(f32, RunMetadata), Error> {
        let (images, labels) = digits.examples(&digits.batch(step, self.batch, TRAINING))?;
        let feeds = feeds! { &self.model.images => images, &self.model.labels => labels };
        let options = RunOptions { trace, ..RunOptions::default() };
        let ((loss, ()), metadata) =
            self.session.run_with_options((&self.model.loss, &self.model.train), feeds, options)?;
        Ok((loss, metadata))
    }

    fn write_event(&self, loss: f32, steps: usize) -> Result<(), Error> {
        self.events.as_ref().map_or(Ok(()), |events| lock(events).add_step(&self.session, loss, steps))
    }

    /// Loss and accuracy on pictures by index.
    pub fn test(&self, digits: &Digits, numbers: &[usize]) -> Result<(f32, f32)> {
        let (images, labels) = digits.examples(numbers)?;
        let feeds = feeds! { &self.model.images => images, &self.model.labels => labels };
        Ok(self.session.run_with((&self.model.loss, &self.model.accuracy), feeds)?)
    }
}

/// Only the worker's own thread locks it, so a poisoned lock holds a valid value.
fn lock(events: &Mutex<Events>) -> MutexGuard<'_, Events> {
    events.lock().unwrap_or_else(PoisonError::into_inner)
}

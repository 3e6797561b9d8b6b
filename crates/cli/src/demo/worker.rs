//! One worker of the demo: a graph, a session with its task, its share of the steps.

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
    /// What it writes for TensorBoard.
    events: Option<Mutex<Events>>,
    checkpoints: Option<Checkpoints>,
}

/// What became of a worker's steps.
#[derive(Default)]
pub struct Report {
    pub losses: Vec<f32>,
    /// Why it stopped early.
    pub error: Option<Error>,
    /// What happened in one of its steps, if that was asked for.
    pub trace: Option<RunMetadata>,
}

/// The step of each worker that `--trace` shows: by then everything is registered and connected.
const TRACED: usize = 10;

impl Worker {
    /// Builds the graph and opens the session; the variables lie on the ps among `tasks`, the rest on `task`.
    pub fn open(target: &str, task: Option<&Task>, tasks: &[Task], args: &Args) -> Result<Worker> {
        let graph = Graph::new();
        let servers = tasks.iter().filter(|task| task.job == "ps").count();
        let model = Model::build(&graph, task, servers, args.seed as i64, args.learning_rate)?;
        let counters = Counters::new(&graph, tasks);
        let session = Session::with_config(target, &graph, SessionConfig::default())?;
        let checkpoints = args.checkpoint_dir.as_deref().map(|folder| Checkpoints::new(&graph, folder)).transpose()?;
        Ok(Worker { graph, model, session, counters, batch: args.batch, events: None, checkpoints })
    }

    /// The same worker, which writes what it does.
    pub fn reporting(self, events: Events) -> Worker {
        Worker { events: Some(Mutex::new(events)), ..self }
    }

    /// Begins the session, which waits until all tasks are there: one that is lost later is noticed.
    pub fn connect(&self) -> Result<()> {
        self.session.list_devices()?;
        Ok(())
    }

    /// Gives all variables their first values, or those of the newest checkpoint; says which one.
    pub fn begin(&self) -> Result<Option<String>> {
        let restored = self.checkpoints.as_ref().map_or(Ok(None), |checkpoints| checkpoints.restore(&self.session))?;
        if restored.is_none() {
            self.session.execute(&global_variables_initializer(&self.graph))?;
        }
        Ok(restored)
    }

    /// Writes a checkpoint, if that is wanted; gives its name.
    pub fn save(&self) -> Result<Option<String>> {
        self.checkpoints.as_ref().map(|checkpoints| checkpoints.save(&self.session, &self.model.step)).transpose()
    }

    /// What the tasks have counted by now.
    pub fn counts(&self) -> Counts {
        self.counters.read(&self.session)
    }

    /// Runs steps until all are done, an error comes, or somebody says stop.
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
            let made = self.step(digits, step, trace).and_then(|(loss, metadata)| {
                report.losses.push(loss);
                report.trace = report.trace.take().or(trace.then_some(metadata));
                self.report(loss, report.losses.len())
            });
            match made {
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
        report.error = self.events.as_ref().and_then(|events| lock(events).end().err());
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

    fn report(&self, loss: f32, steps: usize) -> Result<(), Error> {
        self.events.as_ref().map_or(Ok(()), |events| lock(events).stepped(&self.session, loss, steps))
    }

    /// Loss and accuracy on digits by number.
    pub fn test(&self, digits: &Digits, numbers: &[usize]) -> Result<(f32, f32)> {
        let (images, labels) = digits.examples(numbers)?;
        let feeds = feeds! { &self.model.images => images, &self.model.labels => labels };
        Ok(self.session.run_with((&self.model.loss, &self.model.accuracy), feeds)?)
    }
}

/// Its worker's thread alone locks it, so nobody can have left it in a bad state.
fn lock(events: &Mutex<Events>) -> MutexGuard<'_, Events> {
    events.lock().unwrap_or_else(PoisonError::into_inner)
}

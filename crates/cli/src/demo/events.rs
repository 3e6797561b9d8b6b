//! What the demo writes for TensorBoard: a run for each worker, and in the first what the whole cluster does.

use super::Args;
use anyhow::Result;
use flowgrid::Task;
use flowgrid::prelude::*;
use flowgrid::train::ClusterMetrics;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// An event file of one worker.
pub struct Events {
    writer: Arc<FileWriter>,
    /// Steps of all workers.
    done: Arc<AtomicI64>,
    /// What only the first worker reports.
    whole: Option<(ClusterMetrics, Output)>,
}

/// After how many steps of the first worker histograms and metrics are written.
const EVERY: i64 = 10;

impl Events {
    /// Begins the event file of a worker by its number with its graph.
    pub fn begin(
        folder: &Path,
        (graph, number): (&Graph, usize),
        tasks: &[Task],
        done: &Arc<AtomicI64>,
        args: &Args,
    ) -> Result<Events> {
        let folder = folder.join(format!("worker-{number}"));
        let writer = Arc::new(FileWriter::new(&folder.to_string_lossy())?);
        writer.add_graph(graph)?;
        let whole = match number {
            0 => Some(Events::whole(graph, tasks, &writer, args)?),
            _ => None,
        };
        Ok(Events { writer, done: done.clone(), whole })
    }

    fn whole(graph: &Graph, tasks: &[Task], writer: &Arc<FileWriter>, args: &Args) -> Result<(ClusterMetrics, Output)> {
        let metrics = ClusterMetrics::new(graph, tasks, writer.clone())?.examples_per_step(args.batch as f64);
        let variables = trainable_variables(graph);
        let spread: Vec<Output> =
            variables.iter().map(|variable| summary::histogram(&variable.name(), variable.value())).collect();
        Ok((metrics, summary::merge(&graph.root(), &spread)))
    }

    /// A step was made, with this loss.
    pub fn stepped(&mut self, session: &Session, loss: f32, own_steps: usize) -> Result<(), Error> {
        let step = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.writer.add_scalar("loss", f64::from(loss), step)?;
        if let Some((metrics, histograms)) = self.whole.as_mut().filter(|_| own_steps as i64 % EVERY == 0) {
            let spread: Tensor = session.run(&*histograms)?;
            self.writer.add_summary(spread.to_string_scalar()?, step)?;
            metrics.report(session, step)?;
        }
        Ok(())
    }

    /// Completes the file.
    pub fn end(&self) -> Result<(), Error> {
        self.writer.close()
    }
}

//! The event files of the demo for TensorBoard: one for each worker. That of the first has the metrics of the cluster.

use super::Args;
use anyhow::Result;
use flowgrid::Task;
use flowgrid::prelude::*;
use flowgrid::train::ClusterMetrics;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The event file of one worker.
pub struct Events {
    writer: Arc<FileWriter>,
    /// The number of steps of all workers.
    done: Arc<AtomicI64>,
    /// Metrics of the cluster and histograms, which only the first worker writes.
    cluster: Option<(ClusterMetrics, Output)>,
}

/// The number of steps of the first worker between two reports of histograms and metrics.
const INTERVAL: i64 = 10;

impl Events {
    /// Creates the event file of a worker and writes its graph.
    pub fn begin(
        folder: &Path,
        (graph, number): (&Graph, usize),
        tasks: &[Task],
        done: &Arc<AtomicI64>,
        args: &Args,
    ) -> Result<Events> {
        let folder = folder.join(format!("worker-{number}"));
        let writer = Arc::new(FileWriter::new(&folder)?);
        writer.add_graph(graph)?;
        let cluster = match number {
            0 => Some(Events::cluster(graph, tasks, &writer, args)?),
            _ => None,
        };
        Ok(Events { writer, done: done.clone(), cluster })
    }

    fn cluster(
        graph: &Graph,
        tasks: &[Task],
        writer: &Arc<FileWriter>,
        args: &Args,
    ) -> Result<(ClusterMetrics, Output)> {
        let metrics = ClusterMetrics::new(graph, tasks, writer.clone())?.examples_per_step(args.batch as f64);
        let variables = trainable_variables(graph);
        let histograms: Vec<Output> =
            variables.iter().map(|variable| summary::histogram(&variable.name(), variable.value())).collect();
        Ok((metrics, summary::merge(&graph.root(), &histograms)))
    }

    /// Writes the loss of a step, and the reports that are due.
    pub fn add_step(&mut self, session: &Session, loss: f32, own_steps: usize) -> Result<(), Error> {
        let step = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.writer.add_scalar("loss", f64::from(loss), step)?;
        if let Some((metrics, histograms)) = self.cluster.as_mut().filter(|_| own_steps as i64 % INTERVAL == 0) {
            let summary: Tensor = session.run(&*histograms)?;
            self.writer.add_summary(summary.to_string_scalar()?, step)?;
            metrics.report(session, step)?;
        }
        Ok(())
    }

    /// Writes the rest of the file and closes it.
    pub fn close(&self) -> Result<(), Error> {
        self.writer.close()
    }
}

//! `flowgrid demo`: trains a network that recognises digits, on a cluster of processes that it starts.

mod checkpoint;
mod digits;
mod events;
mod model;
mod placement;
mod traffic;
mod worker;

use crate::numbers::{decimal, whole};
use crate::output::print_line;
use crate::processes::Processes;
use crate::stop;
use anyhow::{Context, Result, bail};
use digits::Digits;
use events::Events;
use flowgrid::{Task, chrome_trace};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use traffic::Counts;
use worker::{Report, Worker};

/// Flags of `flowgrid demo`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    flowgrid demo\n  \
    flowgrid demo --ps 1 --workers 4 --steps 2000\n  \
    flowgrid demo --alone --losses losses.txt\n  \
    flowgrid demo --logdir logs && tensorboard --logdir logs\n  \
    flowgrid demo --trace trace.json   (open it in https://ui.perfetto.dev)\n  \
    flowgrid demo --targets 'ps=h0:2222;worker=h1:2222,h2:2222'\n\n\
    Each worker trains the same variables, which are on the parameter servers, with batches of its own.\n\
    With --alone, or with one worker, the loss of each step equals that of the Python twin crates/cli/demo.py.")]
pub struct Args {
    /// Number of parameter servers to start, which hold the variables.
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = whole::<usize>)]
    ps: usize,

    /// Number of workers to start, which share the steps.
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = whole::<usize>)]
    workers: usize,

    /// Number of training steps of all workers together.
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = whole::<usize>)]
    steps: usize,

    /// Seed of the pictures, the batches and the initial weights.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = whole::<u64>)]
    seed: u64,

    /// Batch size: the number of pictures in each step.
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = whole::<usize>)]
    batch: usize,

    /// Learning rate of the optimizer (Adam).
    #[arg(long, default_value_t = 0.005, value_name = "RATE", value_parser = decimal)]
    learning_rate: f64,

    /// Train in this process, without any server.
    #[arg(long, conflicts_with_all = ["ps", "workers", "targets"])]
    alone: bool,

    /// Train on a cluster that is already running, of Flowgrid's or TensorFlow's servers:
    /// `ps=host:port;worker=host:port`.
    #[arg(long, value_name = "SPEC", conflicts_with_all = ["ps", "workers"])]
    targets: Option<String>,

    /// Write the loss of each step of the first worker to this file, one per line.
    #[arg(long, value_name = "FILE")]
    losses: Option<PathBuf>,

    /// Write event files for TensorBoard to this folder, in a subfolder for each worker: its graph and losses. That of
    /// the first also has histograms of the weights and metrics of all tasks: steps and pictures per second, bytes
    /// received and sent.
    #[arg(long, value_name = "DIR")]
    logdir: Option<PathBuf>,

    /// Restore the newest checkpoint in this folder, if there is one, and write one at the end, with the number of
    /// steps in its name. The newest five are kept.
    #[arg(long, value_name = "DIR")]
    checkpoint_dir: Option<PathBuf>,

    /// Write the timeline of one training step of the first worker to this file, for Perfetto or chrome://tracing.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// The number of pictures for training.
const TRAINING: usize = 4000;
/// The number of pictures for the test, which follow those for training.
const HELD_OUT: usize = 1000;

/// Trains, and prints the results.
pub fn run(args: Args) -> Result<()> {
    anyhow::ensure!(args.batch > 0, "--batch must be at least 1");
    let (cluster, processes) = cluster(&args)?;
    let stopping = AtomicBool::new(false);
    let signal = stop::on_signal()?;
    let tasks: Vec<Task> = cluster.iter().flat_map(flowgrid::ClusterSpec::tasks).collect();
    let workers = with_events(&args, open_workers(&args, cluster.as_ref())?, &tasks)?;
    initialize(&workers, cluster.as_ref())?;
    let counts = workers[0].counts();
    let begin = std::time::Instant::now();
    let ended = AtomicBool::new(false);
    let (reports, seconds) = std::thread::scope(|scope| {
        let (stopping, ended) = (&stopping, &ended);
        scope.spawn(move || watch(signal, stopping, ended));
        let reports = train(&args, &workers, stopping);
        let seconds = begin.elapsed().as_secs_f64();
        ended.store(true, Ordering::Relaxed);
        reports.map(|reports| (reports, seconds))
    })?;
    if let (Some(path), Some(first)) = (&args.losses, reports.first()) {
        write_losses(path, &first.losses).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let result = finish(&args, &tasks, (&workers, &reports), &counts, seconds);
    drop(workers);
    drop(processes);
    if stopping.load(Ordering::Relaxed) {
        print_line!("stopped before its end; all tasks are down")?;
    }
    result
}

/// Sets `stopping` when a signal arrives, until training has ended.
fn watch(signal: Receiver<()>, stopping: &AtomicBool, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        if signal.recv_timeout(std::time::Duration::from_millis(100)).is_ok() {
            return stopping.store(true, Ordering::Relaxed);
        }
    }
}

/// The cluster to train on, or none to train in this process. The processes that this starts stop when dropped.
fn cluster(args: &Args) -> Result<(Option<flowgrid::ClusterSpec>, Option<Processes>)> {
    if args.alone {
        return Ok((None, None));
    }
    if let Some(text) = &args.targets {
        return Ok((Some(flowgrid::ClusterSpec::parse(text)?), None));
    }
    anyhow::ensure!(args.workers > 0, "--workers must be at least 1, or use --alone");
    anyhow::ensure!(
        args.ps > 0 || args.workers == 1,
        "--ps must be at least 1 with several workers: it holds the variables that they share"
    );
    let processes = Processes::start(&[("ps", args.ps), ("worker", args.workers)], |_| Vec::new())?;
    Ok((Some(processes.cluster.clone()), Some(processes)))
}

fn open_workers(args: &Args, cluster: Option<&flowgrid::ClusterSpec>) -> Result<Vec<Worker>> {
    let Some(cluster) = cluster else {
        return Ok(vec![Worker::open("", None, &[], args)?]);
    };
    let all: Vec<Task> = cluster.tasks().collect();
    let tasks: Vec<&Task> = all.iter().filter(|task| task.job == "worker").collect();
    if tasks.is_empty() {
        bail!("the cluster {cluster} has no job 'worker'");
    }
    if tasks.len() > 1 && all.iter().all(|task| task.job != "ps") {
        bail!("the cluster {cluster} has no job 'ps', which holds the variables that several workers share");
    }
    let open = |task| {
        let target = format!("grpc://{}", cluster.address(task).unwrap_or_default());
        Worker::open(&target, Some(task), &all, args)
    };
    tasks.into_iter().map(open).collect()
}

/// The same workers, with event files if `--logdir` is given.
fn with_events(args: &Args, workers: Vec<Worker>, tasks: &[Task]) -> Result<Vec<Worker>> {
    let Some(folder) = &args.logdir else { return Ok(workers) };
    let done = Arc::default();
    let report = |(number, worker): (usize, Worker)| {
        let events = Events::begin(folder, (&worker.graph, number), tasks, &done, args)?;
        Ok(worker.with_events(events))
    };
    workers.into_iter().enumerate().map(report).collect()
}

/// Connects all sessions, initializes or restores the variables, and prints where training starts.
fn initialize(workers: &[Worker], cluster: Option<&flowgrid::ClusterSpec>) -> Result<()> {
    workers.iter().try_for_each(Worker::connect)?;
    if let Some(path) = workers[0].initialize()? {
        print_line!("continuing from {path}")?;
    }
    match cluster {
        Some(cluster) => print_line!("training on {cluster}"),
        None => print_line!("training in this process"),
    }
}

/// Trains on all workers in parallel.
fn train(args: &Args, workers: &[Worker], stopping: &AtomicBool) -> Result<Vec<Report>> {
    let bars = MultiProgress::new();
    let style = ProgressStyle::with_template("{prefix:10} {bar:30} {pos:>5}/{len}  {msg}")?;
    let digits = Digits::new(args.seed);
    std::thread::scope(|scope| {
        let mut running = Vec::new();
        for (number, worker) in workers.iter().enumerate() {
            let bar = bars.add(ProgressBar::new(share(args.steps, workers.len(), number).count() as u64));
            bar.set_style(style.clone());
            bar.set_prefix(format!("worker {number}"));
            let digits = &digits;
            let steps = share(args.steps, workers.len(), number);
            running.push(scope.spawn(move || {
                let report = worker.train(digits, steps, args, &bar, stopping);
                if let Some(error) = &report.error {
                    let steps = report.losses.len();
                    // A closed pipe is reported by the next line that is printed.
                    let _ = bar.suspend(|| print_line!("worker {number} was lost after {steps} steps: {error}"));
                }
                report
            }));
        }
        let joined = running.into_iter().map(|thread| thread.join());
        joined.map(|report| report.map_err(|_| anyhow::anyhow!("a worker's thread panicked"))).collect()
    })
}

/// The steps of a worker: every step whose index is `number` modulo the number of workers.
fn share(steps: usize, workers: usize, number: usize) -> impl ExactSizeIterator<Item = usize> + Send {
    (number..steps).step_by(workers)
}

/// Prints loss and accuracy on the test pictures, the devices of the variables, and the bytes sent between tasks.
fn finish(
    args: &Args,
    tasks: &[Task],
    (workers, reports): (&[Worker], &[Report]),
    before: &Counts,
    seconds: f64,
) -> Result<()> {
    write_trace(args, reports)?;
    let Some(alive) = workers.iter().zip(reports).find_map(|(worker, report)| report.error.is_none().then_some(worker))
    else {
        bail!("no worker is left");
    };
    // Before anything else, because what follows sends tensors too.
    let after = alive.counts();
    let held_out: Vec<usize> = (TRAINING..TRAINING + HELD_OUT).collect();
    if let Some(path) = alive.save()? {
        print_line!("saved {path}")?;
    }
    let (loss, accuracy) = alive.test(&Digits::new(args.seed), &held_out)?;
    let steps: usize = reports.iter().map(|report| report.losses.len()).sum();
    if !args.alone {
        placement::print(alive)?;
        traffic::print(tasks, (before, &after), alive, reports)?;
    }
    print_line!(
        "{steps} steps in {seconds:.2} s ({:.0} digits/s); on {HELD_OUT} test digits: loss {loss:.4}, accuracy \
         {:.1} %",
        (steps * args.batch) as f64 / seconds,
        accuracy * 100.0
    )
}

/// Writes the trace for `--trace`: that of the first worker that reached the traced step.
fn write_trace(args: &Args, reports: &[Report]) -> Result<()> {
    let Some(path) = &args.trace else { return Ok(()) };
    let Some(trace) = reports.iter().find_map(|report| report.trace.as_ref()) else {
        return print_line!("{} was not written: no worker reached the step that is traced", path.display());
    };
    std::fs::write(path, chrome_trace(trace)).with_context(|| format!("cannot write {}", path.display()))?;
    print_line!("{} has the timeline of a step: open it in https://ui.perfetto.dev", path.display())
}

fn write_losses(path: &Path, losses: &[f32]) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for loss in losses {
        writeln!(file, "{loss}")?;
    }
    file.flush()
}

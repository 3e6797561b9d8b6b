//! `flowgrid demo`: a network learns to read digits, on a cluster of processes that it starts itself.

mod checkpoint;
mod digits;
mod events;
mod model;
mod placement;
mod traffic;
mod worker;

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
    Each worker trains on batches of its own with the same variables, which lie on the parameter servers.\n\
    With --alone, or with one worker, the losses are those of the Python twin crates/cli/demo.py, step by step.")]
pub struct Args {
    /// Parameter servers to start; the variables lie there.
    #[arg(long, default_value_t = 2, value_name = "N")]
    ps: usize,

    /// Workers to start; the steps are shared among them.
    #[arg(long, default_value_t = 2, value_name = "N")]
    workers: usize,

    /// Steps of all workers together.
    #[arg(long, default_value_t = 1000)]
    steps: usize,

    /// Seed of the digits, the batches and the first weights.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Digits in each step.
    #[arg(long, default_value_t = 64)]
    batch: usize,

    /// Learning rate of the optimizer (Adam).
    #[arg(long, default_value_t = 0.005)]
    learning_rate: f64,

    /// Train in this process, without any server.
    #[arg(long, conflicts_with_all = ["ps", "workers", "targets"])]
    alone: bool,

    /// Train on a cluster that runs already, TensorFlow's servers included: `ps=host:port;worker=host:port`.
    #[arg(long, value_name = "SPEC", conflicts_with_all = ["ps", "workers"])]
    targets: Option<String>,

    /// Write the loss of every step of the first worker to this file, one line each.
    #[arg(long, value_name = "FILE")]
    losses: Option<PathBuf>,

    /// Write event files for TensorBoard there, a folder for each worker: its graph and losses; of the first also
    /// histograms of the weights, and what all tasks do: steps and digits per second, bytes in and out.
    #[arg(long, value_name = "DIR")]
    logdir: Option<PathBuf>,

    /// Begin with the variables of the newest checkpoint in this folder, if there is one, and write one at the end,
    /// called after the steps that were made; the newest five are kept.
    #[arg(long, value_name = "DIR")]
    checkpoint_dir: Option<PathBuf>,

    /// Write the timeline of one training step of the first worker to this file, for Perfetto or chrome://tracing.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// Digits to learn from, and digits held back.
const TRAINING: usize = 4000;
const HELD_OUT: usize = 1000;

/// Trains and reports.
pub fn run(args: Args) -> Result<()> {
    anyhow::ensure!(args.batch > 0, "--batch must be at least 1");
    let (cluster, processes) = cluster(&args)?;
    let stopping = AtomicBool::new(false);
    let signal = stop::on_signal()?;
    let tasks: Vec<Task> = cluster.iter().flat_map(flowgrid::ClusterSpec::tasks).collect();
    let workers = reporting(&args, open_workers(&args, cluster.as_ref())?, &tasks)?;
    begin(&workers, cluster.as_ref())?;
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
        write_losses(path, &first.losses).with_context(|| format!("writing {}", path.display()))?;
    }
    let result = finish(&args, &tasks, (&workers, &reports), &counts, seconds);
    drop(workers);
    drop(processes);
    if stopping.load(Ordering::Relaxed) {
        println!("stopped before its end; all tasks are down");
    }
    result
}

/// Passes a signal on to those who train, until they have ended.
fn watch(signal: Receiver<()>, stopping: &AtomicBool, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        if signal.recv_timeout(std::time::Duration::from_millis(100)).is_ok() {
            return stopping.store(true, Ordering::Relaxed);
        }
    }
}

/// The cluster to train on; none for this process alone. Processes that were started stop when dropped.
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
        "--ps must be at least 1: the variables of all workers lie there"
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
        bail!("the cluster {cluster} has no job 'ps', where the variables of all workers lie");
    }
    let open = |task| {
        let target = format!("grpc://{}", cluster.address(task).unwrap_or_default());
        Worker::open(&target, Some(task), &all, args)
    };
    tasks.into_iter().map(open).collect()
}

/// The same workers, which write what they do if that is asked for.
fn reporting(args: &Args, workers: Vec<Worker>, tasks: &[Task]) -> Result<Vec<Worker>> {
    let Some(folder) = &args.logdir else { return Ok(workers) };
    let done = Arc::default();
    let report = |(number, worker): (usize, Worker)| {
        let events = Events::begin(folder, (&worker.graph, number), tasks, &done, args)?;
        Ok(worker.reporting(events))
    };
    workers.into_iter().enumerate().map(report).collect()
}

/// Begins all sessions, gives the variables their first values, and says where training begins.
fn begin(workers: &[Worker], cluster: Option<&flowgrid::ClusterSpec>) -> Result<()> {
    workers.iter().try_for_each(Worker::connect)?;
    if let Some(path) = workers[0].begin()? {
        println!("going on from {path}");
    }
    match cluster {
        Some(cluster) => println!("training on {cluster}"),
        None => println!("training in this process"),
    }
    Ok(())
}

/// All workers at once.
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
                    bar.suspend(|| println!("worker {number} was lost after {} steps: {error}", report.losses.len()));
                }
                report
            }));
        }
        let joined = running.into_iter().map(|thread| thread.join());
        joined.map(|report| report.map_err(|_| anyhow::anyhow!("a worker's thread panicked"))).collect()
    })
}

/// The numbers of a worker's steps: every so many-th.
fn share(steps: usize, workers: usize, number: usize) -> impl ExactSizeIterator<Item = usize> + Send {
    (number..steps).step_by(workers)
}

/// Shows how well it reads digits it never saw, where everything lies, and what travelled.
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
    // First of all: what follows moves tensors too.
    let after = alive.counts();
    let held_out: Vec<usize> = (TRAINING..TRAINING + HELD_OUT).collect();
    if let Some(path) = alive.save()? {
        println!("saved {path}");
    }
    let (loss, accuracy) = alive.test(&Digits::new(args.seed), &held_out)?;
    let steps: usize = reports.iter().map(|report| report.losses.len()).sum();
    if !args.alone {
        placement::print(alive);
        traffic::print(tasks, (before, &after), alive, reports);
    }
    println!(
        "{steps} steps in {seconds:.2} s ({:.0} digits/s); on {HELD_OUT} digits it never saw: loss {loss:.4}, accuracy \
         {:.1} %",
        (steps * args.batch) as f64 / seconds,
        accuracy * 100.0
    );
    Ok(())
}

/// Writes the trace of a step, if that is wanted: that of the first worker that got as far.
fn write_trace(args: &Args, reports: &[Report]) -> Result<()> {
    let Some(path) = &args.trace else { return Ok(()) };
    let Some(trace) = reports.iter().find_map(|report| report.trace.as_ref()) else {
        println!("{} was not written: no worker got as far as the step that is traced", path.display());
        return Ok(());
    };
    std::fs::write(path, chrome_trace(trace)).with_context(|| format!("writing {}", path.display()))?;
    println!("{} has the timeline of a step: open it in https://ui.perfetto.dev", path.display());
    Ok(())
}

fn write_losses(path: &Path, losses: &[f32]) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for loss in losses {
        writeln!(file, "{loss}")?;
    }
    file.flush()
}

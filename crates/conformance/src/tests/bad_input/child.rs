//! The child process: runs mutants one after another and writes what became of each to its standard output.

use super::edit::Sample;
use super::inputs::Mutant;
use super::samples::Samples;
use super::{LIMIT, PATIENCE, STUCK, Work, attrs, inputs, ops};
use crate::tests::graphs::run_step;
use crate::{Program, caught};
use flowgrid::prelude::*;
use flowgrid::{Code, ImportOptions};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The samples of each op.
const SAMPLES: usize = 2;
/// The part that always runs has one op in twelve.
const PART: usize = 12;
/// Memory that a small node may take.
const MEMORY: u64 = 256 << 20;
/// The time limit of steps of an op that has waited often.
const SHORT: Duration = Duration::from_millis(50);

/// What became of a mutant.
enum Outcome {
    Answer,
    Error,
    /// The step waited for something, without computing, until it was cancelled.
    Waits,
    /// The step computes although it was cancelled.
    Busy,
}

type Panics = Arc<Mutex<Vec<String>>>;

/// Runs the work of a child.
pub fn run(work: &Work) {
    let panics = Panics::default();
    let seen = panics.clone();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.to_string().replace('\n', " ");
        seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(text);
    }));
    let progress = Arc::new(AtomicUsize::new(0));
    watch(progress.clone());
    let samples = Samples::read(".");
    say("ready");
    for (place, op) in ops().iter().enumerate().take(work.end).skip(work.first) {
        let done = if place == work.first { work.done } else { 0 };
        run_op(&samples, op, (done, work.every), &panics, &progress);
    }
    say("end");
}

/// Ends the process if it makes no progress.
fn watch(progress: Arc<AtomicUsize>) {
    std::thread::spawn(move || {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            std::thread::park_timeout(Duration::from_secs(1));
            let now = progress.load(Ordering::Relaxed);
            if now != last {
                (last, since) = (now, Instant::now());
            }
            if since.elapsed() > STUCK {
                say("stuck");
                std::process::exit(3);
            }
        }
    });
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The parent is gone if nothing can be written.
    let _ = writeln!(out, "@{line}").and_then(|()| out.flush());
}

/// The mutants of an op, and the unchanged nodes.
fn mutants(samples: &Samples, op: &str, count: usize) -> Vec<Mutant> {
    let Some(signature) = samples.signature(op) else { return Vec::new() };
    let mut all = Vec::new();
    for sample in samples.of(op, count) {
        let place = sample.place.clone();
        let mut found = vec![inputs::mutant("unchanged".to_string(), sample.clone())];
        found.extend(inputs::mutants(&sample, signature));
        found.extend(attrs::mutants(&sample, signature));
        found.iter_mut().for_each(|mutant| mutant.what = format!("{place}: {}", mutant.what));
        all.extend(found);
    }
    all
}

fn run_op(samples: &Samples, op: &str, (done, every): (usize, usize), panics: &Panics, progress: &AtomicUsize) {
    let part = every > 1;
    if part && !is_known(op, None) && !ops_hash(op).is_multiple_of(PART) {
        return;
    }
    let all = mutants(samples, op, if part { 1 } else { SAMPLES });
    say(&format!("op\t{op}\t{}", all.len()));
    let mut waited = 0;
    let start = ops_hash(op) % every;
    for (number, mutant) in all.into_iter().enumerate().skip(done) {
        if number % every != start && !is_known(op, Some(&mutant.what)) {
            continue;
        }
        progress.fetch_add(1, Ordering::Relaxed);
        say(&format!("begin\t{number}\t{}", mutant.what));
        let before = memory("VmHWM:");
        let outcome = judge(&mutant.sample, &mut waited);
        for panic in std::mem::take(&mut *panics.lock().unwrap_or_else(|poisoned| poisoned.into_inner())) {
            say(&format!("panic\t{panic}"));
        }
        let grown = memory("VmHWM:").saturating_sub(before);
        if grown > MEMORY {
            say(&format!("memory\t{} MiB", grown >> 20));
            // Resets the peak to what is in use now.
            let _ = std::fs::write("/proc/self/clear_refs", "5");
        }
        say(match &outcome {
            Outcome::Answer => "answer",
            Outcome::Error => "error",
            Outcome::Waits => "waits",
            Outcome::Busy => "busy",
        });
        if matches!(outcome, Outcome::Busy) {
            // The threads that compute would delay what follows: the parent starts another child.
            std::process::exit(0);
        }
    }
}

/// True for input that failed before.
fn is_known(op: &str, what: Option<&str>) -> bool {
    let mut lines = include_str!("../../../bad-input.txt").lines().filter_map(|line| line.split_once(' '));
    lines.any(|(known, change)| known == op && what.is_none_or(|what| what.contains(change)))
}

/// A number that selects other mutants for other ops.
fn ops_hash(op: &str) -> usize {
    (graph::hash64(op.as_bytes()) >> 32) as usize
}

/// Runs a mutant.
fn judge(sample: &Sample, waited: &mut usize) -> Outcome {
    let limit = if *waited > 2 { SHORT } else { LIMIT };
    match caught(|| run_program(&sample.program, limit)) {
        Ok(Ok(())) => Outcome::Answer,
        Ok(Err(error)) if error.code == Code::DeadlineExceeded => {
            *waited += 1;
            if ends() { Outcome::Waits } else { Outcome::Busy }
        }
        _ => Outcome::Error,
    }
}

/// True if this process stops computing.
fn ends() -> bool {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let before = processor_time();
        std::thread::park_timeout(SHORT * 2);
        if processor_time().saturating_sub(before) * 5 < SHORT * 2 {
            return true;
        }
    }
    false
}

fn run_program(program: &Program, limit: Duration) -> Result<()> {
    let graph: Graph = AllOps::new();
    graph.import(&program.graph, &ImportOptions::default())?;
    let config = SessionConfig { isolate_state: true, step_timeout: Some(limit), ..SessionConfig::default() };
    let session = Session::with_config("", &graph, config)?;
    let mut last = BTreeMap::new();
    let mut result = Ok(());
    for step in &program.steps {
        // The steps after one that fails run too: they meet what it left.
        match run_step(&session, step, &last) {
            Ok(values) => last.extend(step.fetches.iter().cloned().zip(values)),
            Err(error) if error.code == Code::DeadlineExceeded => return Err(error),
            Err(error) => result = Err(error),
        }
    }
    result
}

/// The time of the processor that this process took, in the ticks of Linux, of which a second has 100.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// A line of `/proc/self/status`, in bytes.
fn memory(line: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = text.lines().find_map(|text| text.strip_prefix(line)?.split_whitespace().next()?.parse::<u64>().ok());
    found.unwrap_or_default() * 1024
}

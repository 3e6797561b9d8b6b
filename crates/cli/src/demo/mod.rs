//! `flowgrid demo`: a network learns to read digits, in this process or on a server.

mod digits;
mod model;

use anyhow::{Context, Result};
use digits::Digits;
use flowgrid::prelude::*;
use indicatif::{ProgressBar, ProgressStyle};
use model::Model;
use std::io::Write;
use std::path::PathBuf;

/// Flags of `flowgrid demo`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    flowgrid demo\n  \
    flowgrid demo --steps 1000 --learning-rate 0.02 --losses losses.txt\n  \
    flowgrid demo --target grpc://127.0.0.1:2222\n\n\
    The Python twin crates/cli/demo.py trains the same model on the same digits with TensorFlow:\n\
    the losses are the same, step by step.")]
pub struct Args {
    /// How many steps to train.
    #[arg(long, default_value_t = 500)]
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

    /// A server to train on, grpc://host:port; this process if none is given.
    #[arg(long, default_value = "", value_name = "TARGET", hide_default_value = true)]
    target: String,

    /// Write the loss of every step to this file, one line each.
    #[arg(long, value_name = "FILE")]
    losses: Option<PathBuf>,
}

/// Digits to learn from, and digits held back.
const TRAINING: usize = 4000;
const HELD_OUT: usize = 1000;

/// Trains and reports.
pub fn run(args: Args) -> Result<()> {
    anyhow::ensure!(args.batch > 0, "--batch must be at least 1");
    let digits = Digits::new(args.seed);
    let graph = Graph::new();
    let model = Model::build(&graph, args.seed as i64, args.learning_rate)?;
    let session = Session::with_config(&args.target, &graph, SessionConfig::default())?;
    session.execute(&global_variables_initializer(&graph), feeds! {})?;

    let begin = std::time::Instant::now();
    let losses = train(&args, &digits, &model, &session)?;
    let seconds = begin.elapsed().as_secs_f64();
    if let Some(path) = &args.losses {
        write_losses(path, &losses).with_context(|| format!("writing {}", path.display()))?;
    }
    let held_out: Vec<usize> = (TRAINING..TRAINING + HELD_OUT).collect();
    let (images, labels) = digits.examples(&held_out)?;
    let (loss, accuracy): (f32, f32) =
        session.run((&model.loss, &model.accuracy), feeds! { &model.images => images, &model.labels => labels })?;
    println!(
        "{} steps in {seconds:.2} s; on {HELD_OUT} digits it never saw: loss {loss:.4}, accuracy {:.1} %",
        args.steps,
        accuracy * 100.0
    );
    Ok(())
}

fn train(args: &Args, digits: &Digits, model: &Model, session: &Session) -> Result<Vec<f32>> {
    let bar = ProgressBar::new(args.steps as u64);
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len}  {per_sec}  {msg}")?);
    let mut losses = Vec::with_capacity(args.steps);
    for step in 0..args.steps {
        let (images, labels) = digits.examples(&digits.batch(step, args.batch, TRAINING))?;
        let feeds = feeds! { &model.images => images, &model.labels => labels };
        let (loss, ()): (f32, ()) = session.run((&model.loss, &model.train), feeds)?;
        losses.push(loss);
        bar.set_message(format!("loss {loss:.4}"));
        bar.inc(1);
    }
    bar.finish();
    Ok(losses)
}

fn write_losses(path: &PathBuf, losses: &[f32]) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for loss in losses {
        writeln!(file, "{loss}")?;
    }
    file.flush()
}

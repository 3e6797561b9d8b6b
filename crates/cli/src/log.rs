//! The log, on standard error. Placements of nodes are also printed on standard output, as TensorFlow does.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use tracing_subscriber::filter::{EnvFilter, filter_fn};
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// The target of the events of sessions with `log_device_placement`. They are shown whatever level RUST_LOG sets.
const PLACEMENT: &str = "placement";
/// The most lines that wait for a slow reader of standard output. Further lines are only in the log, so that a reader
/// that does not read cannot stop a step.
const MAX_WAITING: usize = 1 << 16;

/// Installs the log for the whole process.
pub fn begin() -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    let filter = filter.add_directive(format!("{PLACEMENT}=info").parse()?);
    let colours = std::io::stderr().is_terminal();
    // Without reports of failed writes: they would go to a standard error that cannot be written.
    let log =
        fmt::layer().with_writer(std::io::stderr).with_ansi(colours).log_internal_errors(false).with_filter(filter);
    let lines = Lines::begin()?;
    let plain = fmt::layer().with_writer(move || lines.clone()).with_ansi(false);
    let plain = plain.without_time().with_level(false).with_target(false);
    let plain = plain.with_filter(filter_fn(|event| event.target() == PLACEMENT));
    tracing_subscriber::registry().with(log).with(plain).init();
    Ok(())
}

/// Standard output, written by a thread of its own, which may block when the reader is slow.
#[derive(Clone)]
struct Lines {
    send: Sender<Vec<u8>>,
    /// Lines that wait to be written. They are counted here because a bounded channel would allocate 2 MB in advance.
    waiting: Arc<AtomicUsize>,
}

impl Lines {
    fn begin() -> std::io::Result<Lines> {
        let (send, lines) = channel::<Vec<u8>>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let still_waiting = waiting.clone();
        std::thread::Builder::new().name("flowgrid-stdout".into()).spawn(move || {
            let written = lines.into_iter().try_for_each(|line| {
                still_waiting.fetch_sub(1, Ordering::Relaxed);
                std::io::stdout().lock().write_all(&line)
            });
            drop(written); // an error means that the reader has ended
        })?;
        Ok(Lines { send, waiting })
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        match self.waiting.fetch_add(1, Ordering::Relaxed) < MAX_WAITING && self.send.send(line.to_vec()).is_ok() {
            true => {}
            false => drop(self.waiting.fetch_sub(1, Ordering::Relaxed)),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

//! What the program tells of itself, on standard error; and where nodes went, on standard output too, as TensorFlow does.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use tracing_subscriber::filter::{EnvFilter, filter_fn};
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// What sessions with `log_device_placement` ask for: it is told whatever the environment says.
const PLACEMENT: &str = "placement";
/// As many lines wait for whoever reads standard output. More are only in the log: who does not read stops no step.
const WAITING: usize = 1 << 16;

/// From now on what happens is told.
pub fn begin() -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    let filter = filter.add_directive(format!("{PLACEMENT}=info").parse()?);
    let colours = std::io::stderr().is_terminal();
    let log = fmt::layer().with_writer(std::io::stderr).with_ansi(colours).with_filter(filter);
    let lines = Lines::begin()?;
    let plain = fmt::layer().with_writer(move || lines.clone()).with_ansi(false);
    let plain = plain.without_time().with_level(false).with_target(false);
    let plain = plain.with_filter(filter_fn(|told| told.target() == PLACEMENT));
    tracing_subscriber::registry().with(log).with(plain).init();
    Ok(())
}

/// Standard output, written by a thread that may wait for its reader.
#[derive(Clone)]
struct Lines {
    send: Sender<Vec<u8>>,
    /// Lines that wait. Counted here: a channel with this bound would take 2 MB before the first line.
    waiting: Arc<AtomicUsize>,
}

impl Lines {
    fn begin() -> std::io::Result<Lines> {
        let (send, lines) = channel::<Vec<u8>>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let written = waiting.clone();
        std::thread::Builder::new().name("flowgrid-stdout".into()).spawn(move || {
            let told = lines.into_iter().try_for_each(|line| {
                written.fetch_sub(1, Ordering::Relaxed);
                std::io::stdout().lock().write_all(&line)
            });
            drop(told); // nobody reads any more
        })?;
        Ok(Lines { send, waiting })
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        match self.waiting.fetch_add(1, Ordering::Relaxed) < WAITING && self.send.send(line.to_vec()).is_ok() {
            true => {}
            false => drop(self.waiting.fetch_sub(1, Ordering::Relaxed)),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

//! A progress bar over the bytes of a file, on standard error.

use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// After this many rows the bar is drawn again.
const EVERY: u64 = 256;

/// Shows how much of a file has been read. Without a terminal nothing is shown.
pub struct Progress {
    bar: ProgressBar,
    read: Arc<AtomicU64>,
    rows: u64,
}

impl Progress {
    /// A bar for files of this size. Their readers count bytes in [`Progress::read`].
    pub fn new(size: u64) -> Progress {
        let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {msg}");
        let bar = ProgressBar::new(size).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress { bar, read: Arc::default(), rows: 0 }
    }

    /// The number of bytes that have been read.
    pub fn read(&self) -> &Arc<AtomicU64> {
        &self.read
    }

    /// Counts a row.
    pub fn row(&mut self) {
        self.rows += 1;
        if self.rows.is_multiple_of(EVERY) {
            self.bar.set_message(format!("{} rows", self.rows));
            self.bar.set_position(self.read.load(Ordering::Relaxed));
        }
    }

    /// Removes the bar; the number of rows.
    pub fn finish(self) -> u64 {
        self.bar.finish_and_clear();
        self.rows
    }
}

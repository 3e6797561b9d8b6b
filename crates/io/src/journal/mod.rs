//! A journal of values that change: every change is in a file before anybody can see it, so that a process that is
//! killed can be started again with what it knew.
//!
//! A journal is a folder of segments, `00000001.journal` and so on. A change is one record: its length, its checksum,
//! what changed, and the new bytes, of all or of some rows. Changes are handed to the operating system at once, which
//! keeps them when the process is killed; `sync` lets them survive a power cut. Reading goes through the segments in
//! order; a record that breaks off at the end of the last one was being written when the process died, and is dropped.
//! To get rid of old changes, a new segment is begun, every value is written to it once, and older segments go.

mod record;

use crate::fs::data_loss;
use parking_lot::Mutex;
use record::Reading;
pub use record::{Change, Entry};
use status::{Result, failed_precondition, unavailable};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use tensor::Tensor;

/// A journal that is open for writing. Only one process has it open.
pub struct Journal {
    folder: PathBuf,
    _lock: File,
    state: Mutex<State>,
}

struct State {
    file: File,
    segment: u64,
    bytes: u64,
    synced: bool,
}

/// Values by what they belong to.
pub type Values = BTreeMap<Entry, Tensor>;

impl Journal {
    /// Opens a folder, makes it if it is not there, and gives the values it holds.
    pub fn open(folder: &Path) -> Result<(Journal, Values)> {
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        let lock = File::create(folder.join("lock")).map_err(|error| failed(folder, &error))?;
        lock.try_lock()
            .map_err(|_| failed_precondition!("{}: another process writes this journal", folder.display()))?;
        let segments = segments(folder)?;
        let mut values = Values::new();
        let last = segments.last().copied();
        for &segment in &segments {
            read(&path(folder, segment), &mut values, Some(segment) == last)?;
        }
        let segment = last.unwrap_or(0) + 1;
        let file = begin(folder, segment)?;
        let state = Mutex::new(State { file, segment, bytes: 0, synced: true });
        Ok((Journal { folder: folder.to_path_buf(), _lock: lock, state }, values))
    }

    /// Writes down a change.
    pub fn append(&self, entry: &Entry, change: &Change<'_>) -> Result<()> {
        let record = record::encode(entry, change)?;
        let mut state = self.state.lock();
        let written = record.pieces().try_for_each(|piece| state.file.write_all(piece));
        written.map_err(|error| failed(&path(&self.folder, state.segment), &error))?;
        state.bytes += record.len();
        state.synced = false;
        Ok(())
    }

    /// Lets all changes so far survive a power cut.
    pub fn sync(&self) -> Result<()> {
        let (file, segment) = {
            let mut state = self.state.lock();
            if std::mem::replace(&mut state.synced, true) {
                return Ok(());
            }
            (state.file.try_clone(), state.segment)
        };
        file.and_then(|file| file.sync_data()).map_err(|error| failed(&path(&self.folder, segment), &error))
    }

    /// How many bytes were written since the last rotation.
    pub fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    /// Begins a new segment and gives its number. When every value was written to it, `drop_before` that number.
    pub fn rotate(&self) -> Result<u64> {
        self.sync()?;
        let mut state = self.state.lock();
        let segment = state.segment + 1;
        *state = State { file: begin(&self.folder, segment)?, segment, bytes: 0, synced: true };
        Ok(segment)
    }

    /// Takes older segments away: what they hold is in newer ones.
    pub fn drop_before(&self, segment: u64) -> Result<()> {
        self.sync()?;
        for old in segments(&self.folder)?.into_iter().filter(|&old| old < segment) {
            let path = path(&self.folder, old);
            fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
        }
        Ok(())
    }
}

fn failed(path: &Path, error: &std::io::Error) -> status::Error {
    unavailable!("Journal {}: {error}", path.display())
}

fn path(folder: &Path, segment: u64) -> PathBuf {
    folder.join(format!("{segment:08}.journal"))
}

fn begin(folder: &Path, segment: u64) -> Result<File> {
    let path = path(folder, segment);
    OpenOptions::new().create_new(true).append(true).open(&path).map_err(|error| failed(&path, &error))
}

/// The numbers of all segments, in order.
fn segments(folder: &Path) -> Result<Vec<u64>> {
    let names = fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    let number = |name: &str| name.strip_suffix(".journal").and_then(|number| number.parse().ok());
    let mut found: Vec<u64> =
        names.flatten().filter_map(|entry| number(&entry.file_name().to_string_lossy())).collect();
    found.sort_unstable();
    Ok(found)
}

/// Puts the changes of a segment onto the values.
fn read(path: &Path, values: &mut Values, last: bool) -> Result<()> {
    let file = File::open(path).map_err(|error| failed(path, &error))?;
    let mut reading = Reading::new(file).map_err(|error| failed(path, &error))?;
    loop {
        match reading.next(values) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(_) if last && reading.is_torn() => {
                let cut = OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(reading.complete()));
                return cut.map_err(|error| failed(path, &error));
            }
            Err(error) => return Err(data_loss(format!("Journal {}: {}", path.display(), error.message))),
        }
    }
}

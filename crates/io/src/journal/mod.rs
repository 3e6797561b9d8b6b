//! A journal of values that change: every change is in a file before anybody can see it, so that a process that is
//! killed can be started again with what it knew.
//!
//! A journal is a folder of segments, `00000001.journal` and so on. A change is one record: its length, its checksum,
//! what changed, and the new bytes, of all or of some rows. Changes are handed to the operating system at once, which
//! keeps them when the process is killed; `sync` lets them survive a power cut. Reading goes through the segments in
//! order; a record that breaks off at the end of the last one was being written when the process died, and is dropped.
//! To get rid of old changes, a new segment is begun, every value is written to it once, and older segments go. Rows that
//! change meanwhile may come before their value, which has them already.

mod record;

use crate::fs::data_loss;
use parking_lot::Mutex;
use record::Reading;
pub use record::{Change, Entry};
use status::{Code, Error, Result, failed_precondition};
use std::collections::{BTreeMap, BTreeSet};
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
    /// Why a change could not be written: then none that follow it may be.
    broken: Option<Error>,
}

/// Values by what they belong to.
pub type Values = BTreeMap<Entry, Tensor>;

/// What the changes so far make.
#[derive(Default)]
struct Found {
    values: Values,
    /// Of these there were rows before the value.
    awaited: BTreeSet<Entry>,
}

impl Journal {
    /// Opens a folder, makes it if it is not there, and gives the values it holds.
    pub fn open(folder: &Path) -> Result<(Journal, Values)> {
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        // Its name survives a power cut, where folders can be synced.
        for around in folder.ancestors().skip(1) {
            let _ = File::open(around).and_then(|folder| folder.sync_all());
        }
        let lock = File::create(folder.join("lock")).map_err(|error| failed(folder, &error))?;
        lock.try_lock()
            .map_err(|_| failed_precondition!("{}: another process writes this journal", folder.display()))?;
        let segments = segments(folder)?;
        let mut found = Found::default();
        let last = segments.last().copied();
        for &segment in &segments {
            read(&path(folder, segment), &mut found, Some(segment) == last)?;
        }
        if let Some(entry) = found.awaited.first() {
            return Err(data_loss(format!("Journal {}: rows of {} without it", folder.display(), entry.name)));
        }
        let segment = last.unwrap_or(0) + 1;
        let file = begin(folder, segment)?;
        let state = Mutex::new(State { file, segment, bytes: 0, synced: true, broken: None });
        Ok((Journal { folder: folder.to_path_buf(), _lock: lock, state }, found.values))
    }

    /// Writes down a change.
    pub fn append(&self, entry: &Entry, change: &Change<'_>) -> Result<()> {
        let record = record::encode(entry, change)?;
        let mut state = self.state.lock();
        if let Some(broken) = &state.broken {
            return Err(broken.clone());
        }
        if let Err(error) = record.pieces().try_for_each(|piece| state.file.write_all(piece)) {
            let _ = state.file.set_len(state.bytes); // without the part that was written, which a reader would drop too
            let broken = failed(&path(&self.folder, state.segment), &error);
            state.broken = Some(broken.clone());
            return Err(broken);
        }
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
        self.sync()?; // so that little is left to wait for while nobody can write
        let mut state = self.state.lock();
        if let Some(broken) = &state.broken {
            return Err(broken.clone());
        }
        // A segment that is not the last must not break off, also after a power cut.
        state.file.sync_data().map_err(|error| failed(&path(&self.folder, state.segment), &error))?;
        let segment = state.segment + 1;
        *state = State { file: begin(&self.folder, segment)?, segment, bytes: 0, synced: true, broken: None };
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

/// Not `Unavailable`, whatever it is: clients would try again, and meet the same disk.
fn failed(path: &Path, error: &std::io::Error) -> Error {
    let failed = crate::fs::failed(&format!("Journal {}", path.display()), error);
    let code = if failed.code == Code::Unavailable { Code::FailedPrecondition } else { failed.code };
    let cure = match code {
        Code::ResourceExhausted => {
            ": make room for twice what the variables take and start the task again, it has all that \
                                    was answered before"
        }
        _ => "",
    };
    Error::new(code, failed.message + cure)
}

fn path(folder: &Path, segment: u64) -> PathBuf {
    folder.join(format!("{segment:08}.journal"))
}

/// Begins a segment, whose name survives a power cut: what will be written to it is worth nothing without.
fn begin(folder: &Path, segment: u64) -> Result<File> {
    let path = path(folder, segment);
    let file = OpenOptions::new().create_new(true).append(true).open(&path);
    let named = file.and_then(|file| File::open(folder)?.sync_all().map(|()| file));
    named.map_err(|error| failed(&path, &error))
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

/// Puts the changes of a segment onto what was found before.
fn read(path: &Path, found: &mut Found, last: bool) -> Result<()> {
    let file = File::open(path).map_err(|error| failed(path, &error))?;
    let mut reading = Reading::new(file).map_err(|error| failed(path, &error))?;
    loop {
        match reading.next(found) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(_) if last && reading.is_torn() => {
                let cut = |file: File| file.set_len(reading.complete()).and_then(|()| file.sync_all());
                return OpenOptions::new().write(true).open(path).and_then(cut).map_err(|error| failed(path, &error));
            }
            Err(error) => return Err(data_loss(format!("Journal {}: {}", path.display(), error.message))),
        }
    }
}

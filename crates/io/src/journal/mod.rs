//! A journal of values that change: every change is in a file before anybody can see it, so that a process that is
//! killed can be started again with what it knew.
//!
//! A journal is a folder. Large values that change as a whole are written over and over, in slots (`slots`). All other
//! changes go to a log, which has segments, `00000001.journal` and so on: each is one record, its length, its checksum,
//! what changed, and the new bytes, of all or of some rows. Changes are numbered, so that rows in the log that are older
//! than the value in a slot are known to be in it. They are handed to the operating system at once, which keeps them when
//! the process is killed; `sync` lets them survive a power cut.
//!
//! Reading looks at the slots, then goes through the segments in order; a record that is not complete and was not on the
//! disk was being written when the process died, and is dropped with what follows. To get rid of old changes, a new segment is begun, every
//! value that is not in a slot as it is now is written once, and older segments go. Rows that change meanwhile may come
//! before their value, which has them already.

mod record;
mod segment;
mod slots;

use crate::fs::data_loss;
use parking_lot::Mutex;
use record::Record;
pub use record::{Change, Entry};
use slots::Slots;
use status::{Code, Error, Result, failed_precondition};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tensor::Tensor;

/// A journal that is open for writing. Only one process has it open.
pub struct Journal {
    folder: PathBuf,
    _lock: File,
    /// The number of the next change. Those of one value are told in their order.
    next: AtomicU64,
    slots: Slots,
    state: Mutex<State>,
    /// Who lets changes survive a power cut is alone with that. Whether it failed: then nobody knows what is on the disk,
    /// and that is told only once.
    syncing: Mutex<bool>,
}

struct State {
    file: Arc<File>,
    segment: u64,
    /// How long the segment is.
    end: u64,
    /// How much of it survives a power cut.
    synced: u64,
    /// Why a change could not be written: then none that follow it may be.
    broken: Option<Error>,
}

/// Values by what they belong to.
pub type Values = BTreeMap<Entry, Tensor>;

/// What the changes so far make.
#[derive(Default)]
struct Found {
    values: BTreeMap<Entry, Kept>,
    /// Of these there were rows before the value.
    awaited: BTreeSet<Entry>,
    /// The highest number of a change.
    last: u64,
}

/// A value that was found.
struct Kept {
    value: Tensor,
    /// The change that made it as a whole.
    sequence: u64,
    /// Rows changed after that.
    followed: bool,
}

impl Journal {
    /// Opens a folder, makes it if it is not there, and gives the values it holds.
    pub fn open(folder: &Path) -> Result<(Journal, Values)> {
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        // Its name survives a power cut, where folders can be synced.
        let whole = folder.canonicalize().map_err(|error| failed(folder, &error))?;
        for around in whole.ancestors().skip(1) {
            let _ = File::open(around).and_then(|folder| folder.sync_all());
        }
        let lock = File::create(folder.join("lock")).map_err(|error| failed(folder, &error))?;
        lock.try_lock()
            .map_err(|_| failed_precondition!("{}: another process writes this journal", folder.display()))?;
        let segments = segment::list(folder)?;
        let mut found = Found::default();
        let slots = Slots::open(folder, &mut found)?;
        let last = segments.last().copied();
        for &segment in &segments {
            segment::read(&segment::path(folder, segment), &mut found, Some(segment) == last)?;
        }
        if let Some(entry) = found.awaited.first() {
            return Err(data_loss(format!("Journal {}: rows of {} without it", folder.display(), entry.name)));
        }
        slots.settle(&found);
        let next = AtomicU64::new(found.last.saturating_add(1));
        let values = found.values.into_iter().map(|(entry, kept)| (entry, kept.value)).collect();
        let state = Mutex::new(State::begin(folder, last.unwrap_or(0) + 1)?);
        let folder = folder.to_path_buf();
        Ok((Journal { folder, _lock: lock, next, slots, state, syncing: Mutex::default() }, values))
    }

    /// Writes down a change. Nobody else does so for this value meanwhile.
    pub fn append(&self, entry: &Entry, change: &Change<'_>) -> Result<()> {
        let base = self.slots.sequence(entry).unwrap_or(0);
        let record = record::encode(entry, change, self.next.fetch_add(1, Ordering::Relaxed), base)?;
        if matches!(change, Change::Value(value) if value.buffer().is_some()) && slots::fits(&record) {
            if let Some(broken) = &self.state.lock().broken {
                return Err(broken.clone());
            }
            return self.slots.write(entry, &record).map_err(|error| self.broken(error));
        }
        self.log(record)?;
        match change {
            Change::Rows(..) => self.slots.follow(entry),
            Change::Value(_) | Change::Gone => self.slots.lose(entry),
            Change::Forgotten => self.slots.forget(&entry.container),
        }
        Ok(())
    }

    /// Writes a value down that is as it was, unless older segments are not needed to know it.
    pub fn renew(&self, entry: &Entry, value: &Tensor) -> Result<()> {
        if self.slots.has(entry) { Ok(()) } else { self.append(entry, &Change::Value(value)) }
    }

    fn log(&self, mut record: Record) -> Result<()> {
        let pieces = record.framed();
        let mut state = self.state.lock();
        if let Some(broken) = &state.broken {
            return Err(broken.clone());
        }
        let [head, body] = pieces.map(|piece| piece.len() as u64);
        let written = state.file.write_all_at(pieces[0], state.end);
        if let Err(error) = written.and_then(|()| state.file.write_all_at(pieces[1], state.end + head)) {
            let _ = state.file.set_len(state.end); // without the part that was written, which a reader would drop too
            let broken = failed(&segment::path(&self.folder, state.segment), &error);
            state.broken = Some(broken.clone());
            return Err(broken);
        }
        state.end += head + body;
        Ok(())
    }

    /// Nothing is written any more, because of the first error.
    fn broken(&self, error: Error) -> Error {
        self.state.lock().broken.get_or_insert(error).clone()
    }

    /// Lets all changes so far survive a power cut.
    pub fn sync(&self) -> Result<()> {
        let mut failed = self.syncing.lock();
        if *failed {
            return self.state.lock().broken.clone().map_or(Ok(()), Err);
        }
        let synced = self.sync_alone().map_err(|error| self.broken(error));
        *failed = synced.is_err();
        synced
    }

    fn sync_alone(&self) -> Result<()> {
        let retired = self.slots.retired();
        let (file, segment, end, synced) = {
            let state = self.state.lock();
            (state.file.clone(), state.segment, state.end, state.synced)
        };
        if synced < end {
            let done = file.sync_data().and_then(|()| segment::mark(&file, end));
            done.map_err(|error| failed(&segment::path(&self.folder, segment), &error))?;
            let mut state = self.state.lock();
            if state.segment == segment {
                state.synced = end;
            }
        }
        self.slots.sync(retired)
    }

    /// How many bytes the log got since the last rotation.
    pub fn bytes(&self) -> u64 {
        self.state.lock().end - segment::START
    }

    /// Begins a new segment and gives its number. When every value was renewed, `drop_before` that number.
    pub fn rotate(&self) -> Result<u64> {
        self.sync()?; // so that little is left to wait for while nobody can write
        let mut unsynced = self.syncing.lock();
        let mut state = self.state.lock();
        if let Some(broken) = &state.broken {
            return Err(broken.clone());
        }
        // A segment that is not the last must not break off, also after a power cut.
        let synced =
            state.file.sync_data().map_err(|error| failed(&segment::path(&self.folder, state.segment), &error));
        *unsynced = synced.is_err();
        match synced.and_then(|()| State::begin(&self.folder, state.segment + 1)) {
            Ok(begun) => *state = begun,
            // There may be a segment that follows, so this one must not grow.
            Err(error) => return Err(state.broken.insert(error).clone()),
        }
        Ok(state.segment)
    }

    /// Takes older segments away: what they hold is in newer ones, or in slots.
    pub fn drop_before(&self, segment: u64) -> Result<()> {
        // Slots of values that are gone, as older segments may say, are empty.
        (0..slots::SYNCS).try_for_each(|_| self.sync())?;
        for old in segment::list(&self.folder)?.into_iter().filter(|&old| old < segment) {
            let path = segment::path(&self.folder, old);
            fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
        }
        Ok(())
    }
}

impl State {
    fn begin(folder: &Path, segment: u64) -> Result<State> {
        let file = Arc::new(segment::begin(folder, segment)?);
        Ok(State { file, segment, end: segment::START, synced: segment::START, broken: None })
    }
}

/// What a file holds cannot be taken: it is damaged, or there is no memory for it.
fn damaged(path: &Path, error: &Error) -> Error {
    let code = if error.code == Code::ResourceExhausted { error.code } else { Code::DataLoss };
    Error::new(code, format!("Journal {}: {}", path.display(), error.message))
}

/// Not `Unavailable`, whatever it is: clients would try again, and meet the same disk.
fn failed(path: &Path, error: &std::io::Error) -> Error {
    let failed = crate::fs::failed(&format!("Journal {}", path.display()), error);
    let code = if failed.code == Code::Unavailable { Code::FailedPrecondition } else { failed.code };
    let cure = match code {
        Code::ResourceExhausted => {
            ": make room for five times what the variables take and start the task again, it has all that \
                                    was answered before"
        }
        _ => "",
    };
    Error::new(code, failed.message + cure)
}

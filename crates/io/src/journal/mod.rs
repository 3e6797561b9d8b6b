//! A journal of values that change. A change is written to a file before it becomes visible, so a process that is
//! killed can be started again with its values.
//!
//! A journal is a folder. Large values that change as a whole are overwritten in place, in slots (`slots`). All other
//! changes are appended to a log of segments, `00000001.journal` and so on. A record of the log has a length, a
//! checksum, a description of the change, and the new bytes of the whole value or of some rows. Changes are numbered,
//! so rows in the log that are older than the value in a slot are known to be part of it. Records are passed to the
//! operating system at once, which keeps them when the process is killed; `sync` makes them survive a power cut.
//!
//! Reading starts with the slots and continues with the segments in order. A record that is incomplete and was not
//! yet synced was being written when the process died; it is dropped with all that follows. To remove old changes, a
//! new segment is started, each value that is not in a slot in its current state is written once, and older segments
//! are deleted. Rows that change meanwhile may precede their value in the log, which already contains them.

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

/// A journal that is open for writing. Only one process can have it open.
pub struct Journal {
    folder: PathBuf,
    _lock: File,
    /// The number of the next change. The changes of one value are recorded in their order.
    next: AtomicU64,
    slots: Slots,
    state: Mutex<State>,
    /// Held while changes are synced to the disk. True after a failed sync: the state of the disk is then unknown, and
    /// the error was returned once.
    syncing: Mutex<bool>,
}

struct State {
    file: Arc<File>,
    segment: u64,
    /// The length of the segment.
    end: u64,
    /// The length of the part that survives a power cut.
    synced: u64,
    /// The error of a failed write. After it nothing is written, so that no change follows a missing one.
    broken: Option<Error>,
}

/// Values by the entry they belong to.
pub type Values = BTreeMap<Entry, Tensor>;

/// The result of all changes so far.
#[derive(Default)]
struct Found {
    values: BTreeMap<Entry, Kept>,
    /// Values whose rows were found before the value itself.
    awaited: BTreeSet<Entry>,
    /// The highest number of a change.
    last: u64,
}

/// A value that was found in the journal.
struct Kept {
    value: Tensor,
    /// The change that set the whole value.
    sequence: u64,
    /// True if rows changed after that.
    followed: bool,
}

impl Journal {
    /// Opens a folder, which is created if it does not exist, and returns the values in it.
    pub fn open(folder: &Path) -> Result<(Journal, Values)> {
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        // The name of the folder survives a power cut, where folders can be synced.
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
            return Err(data_loss(format!("Journal {}: rows of {} without its value", folder.display(), entry.name)));
        }
        slots.settle(&found);
        let next = AtomicU64::new(found.last.saturating_add(1));
        let values = found.values.into_iter().map(|(entry, kept)| (entry, kept.value)).collect();
        let state = Mutex::new(State::begin(folder, last.unwrap_or(0) + 1)?);
        let folder = folder.to_path_buf();
        Ok((Journal { folder, _lock: lock, next, slots, state, syncing: Mutex::default() }, values))
    }

    /// Records a change. The caller allows no other change of this value meanwhile.
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

    /// Records a value that has not changed, unless it can be restored without older segments.
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
            let _ = state.file.set_len(state.end); // without the part that was written; a reader would drop it too
            let broken = failed(&segment::path(&self.folder, state.segment), &error);
            state.broken = Some(broken.clone());
            return Err(broken);
        }
        state.end += head + body;
        Ok(())
    }

    /// Stops all writing, because of the first error.
    fn broken(&self, error: Error) -> Error {
        self.state.lock().broken.get_or_insert(error).clone()
    }

    /// Makes all changes so far survive a power cut.
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

    /// The number of bytes in the log since the last rotation.
    pub fn bytes(&self) -> u64 {
        self.state.lock().end - segment::START
    }

    /// Starts a new segment and returns its number. When all values are renewed, call `drop_before` with this number.
    pub fn rotate(&self) -> Result<u64> {
        self.sync()?; // so that little remains to be synced while writers are blocked
        let mut unsynced = self.syncing.lock();
        let mut state = self.state.lock();
        if let Some(broken) = &state.broken {
            return Err(broken.clone());
        }
        // Only the last segment may be incomplete, also after a power cut.
        let synced =
            state.file.sync_data().map_err(|error| failed(&segment::path(&self.folder, state.segment), &error));
        *unsynced = synced.is_err();
        match synced.and_then(|()| State::begin(&self.folder, state.segment + 1)) {
            Ok(begun) => *state = begun,
            // A following segment may exist, so this one must not grow.
            Err(error) => return Err(state.broken.insert(error).clone()),
        }
        Ok(state.segment)
    }

    /// Deletes older segments. Their content is in newer segments or in slots.
    pub fn drop_before(&self, segment: u64) -> Result<()> {
        // Slots are empty for values that older segments record as deleted.
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

/// The error for a file whose content is damaged or does not fit into memory.
fn damaged(path: &Path, error: &Error) -> Error {
    let code = if error.code == Code::ResourceExhausted { error.code } else { Code::DataLoss };
    Error::new(code, format!("Journal {}: {}", path.display(), error.message))
}

/// Never `Unavailable`: clients would retry and find the same disk.
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

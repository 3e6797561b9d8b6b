//! A journal of values that change: every change is in a file before anybody can see it, so that a process that is
//! killed can be started again with what it knew.
//!
//! A journal is a folder. Large values that change as a whole are written over and over, in slots (`slots.rs`). All other
//! changes go to a log, which has segments, `00000001.journal` and so on: each is one record, its length, its checksum,
//! what changed, and the new bytes, of all or of some rows. Changes are numbered, so that rows in the log that are older
//! than the value in a slot are known to be in it. They are handed to the operating system at once, which keeps them when
//! the process is killed; `sync` lets them survive a power cut.
//!
//! Reading looks at the slots, then goes through the segments in order; a record that breaks off at the end of the last
//! one was being written when the process died, and is dropped. To get rid of old changes, a new segment is begun, every
//! value that is not in a slot as it is now is written once, and older segments go. Rows that change meanwhile may come
//! before their value, which has them already.

mod record;
mod slots;

use crate::fs::data_loss;
use parking_lot::Mutex;
pub use record::{Change, Entry};
use record::{Reading, Record};
use slots::Slots;
use status::{Code, Error, Result, failed_precondition};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
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
        for around in folder.ancestors().skip(1) {
            let _ = File::open(around).and_then(|folder| folder.sync_all());
        }
        let lock = File::create(folder.join("lock")).map_err(|error| failed(folder, &error))?;
        lock.try_lock()
            .map_err(|_| failed_precondition!("{}: another process writes this journal", folder.display()))?;
        let segments = segments(folder)?;
        let mut found = Found::default();
        let slots = Slots::open(folder, &mut found)?;
        let last = segments.last().copied();
        for &segment in &segments {
            read(&path(folder, segment), &mut found, Some(segment) == last)?;
        }
        if let Some(entry) = found.awaited.first() {
            return Err(data_loss(format!("Journal {}: rows of {} without it", folder.display(), entry.name)));
        }
        slots.settle(&found);
        let next = AtomicU64::new(found.last.saturating_add(1));
        let values = found.values.into_iter().map(|(entry, kept)| (entry, kept.value)).collect();
        let segment = last.unwrap_or(0) + 1;
        let file = begin(folder, segment)?;
        let state = Mutex::new(State { file, segment, bytes: 0, synced: true, broken: None });
        Ok((Journal { folder: folder.to_path_buf(), _lock: lock, next, slots, state }, values))
    }

    /// Writes down a change. Nobody else does so for this value meanwhile.
    pub fn append(&self, entry: &Entry, change: &Change<'_>) -> Result<()> {
        let record = record::encode(entry, change, self.next.fetch_add(1, Ordering::Relaxed))?;
        if matches!(change, Change::Value(value) if value.buffer().is_some()) && slots::fits(&record) {
            if let Some(broken) = &self.state.lock().broken {
                return Err(broken.clone());
            }
            let broken = |error: Error| self.state.lock().broken.get_or_insert(error).clone();
            return self.slots.write(entry, &record).map_err(broken);
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
        if let Err(error) = pieces.iter().try_for_each(|piece| state.file.write_all(piece)) {
            let _ = state.file.set_len(state.bytes); // without the part that was written, which a reader would drop too
            let broken = failed(&path(&self.folder, state.segment), &error);
            state.broken = Some(broken.clone());
            return Err(broken);
        }
        state.bytes += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        state.synced = false;
        Ok(())
    }

    /// Lets all changes so far survive a power cut.
    pub fn sync(&self) -> Result<()> {
        let retired = self.slots.retired();
        let file = {
            let mut state = self.state.lock();
            let synced = std::mem::replace(&mut state.synced, true);
            (!synced).then(|| (state.file.try_clone(), state.segment))
        };
        if let Some((file, segment)) = file {
            let synced = file.and_then(|file| file.sync_data());
            synced.map_err(|error| failed(&path(&self.folder, segment), &error))?;
        }
        self.slots.sync(retired)
    }

    /// How many bytes the log got since the last rotation.
    pub fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    /// Begins a new segment and gives its number. When every value was renewed, `drop_before` that number.
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

    /// Takes older segments away: what they hold is in newer ones, or in slots.
    pub fn drop_before(&self, segment: u64) -> Result<()> {
        // Slots of values that are gone, as older segments may say, are empty.
        (0..slots::SYNCS).try_for_each(|_| self.sync())?;
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

//! Values that change as a whole, again and again: each has four slots in a file, and is written over and over there.
//!
//! A slot is a page that says what is in it, and the bytes of the value. A new value goes to a slot that holds neither the
//! newest one, which is all there is if the process is killed now, nor the one that a power cut would leave, nor the one
//! that is on its way to the disk. So the bytes always go to pages the operating system has already, and of many values
//! between two visits to the disk it writes one. Who reads takes the newest slot that is complete. A slot that was on the
//! disk as a whole has a mark: if it is not complete and newer than what is, there is damage.
//!
//! A file has slots of one size. Sizes are rounded up by an eighth at most, so that there are few files.

use super::record::{self, Record};
use super::{Entry, Found, failed};
use crate::crc;
use crate::fs::data_loss;
use parking_lot::{Mutex, RwLock};
use status::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Values of fewer bytes are not worth a slot.
const SMALLEST: usize = 64 << 10;
/// Slots of a value: the newest, the one on the disk, the one on its way there, and one to write to.
const SLOTS: u64 = 4;
/// What a slot begins with.
const PAGE: usize = 4096;
const MAGIC: [u8; 8] = *b"flowgri\x01";
/// Magic, checksum of what follows, lengths of fields and value, checksum of the value.
const FIXED: usize = 8 + 4 + 4 + 8 + 4;
/// The end of the page has the number of the change again if the slot is on the disk.
const MARK: usize = PAGE - 8;

/// The slots of all values that have some.
pub(super) struct Slots {
    folder: PathBuf,
    files: Mutex<BTreeMap<u64, Arc<SlotFile>>>,
    places: RwLock<BTreeMap<Entry, Arc<Mutex<Place>>>>,
    retired: Mutex<Vec<Arc<Mutex<Place>>>>,
    syncing: Mutex<()>,
}

struct SlotFile {
    path: PathBuf,
    size: u64,
    file: File,
    room: Mutex<Room>,
}

/// Places of a file that nobody has.
struct Room {
    end: u64,
    free: Vec<u64>,
    /// They are empty, but a power cut could bring back what they had.
    wiped: Vec<u64>,
}

/// Where a value is.
struct Place {
    file: Arc<SlotFile>,
    number: u64,
    newest: Option<Written>,
    safe: Option<Written>,
    syncing: Option<Written>,
    /// The log has rows that are newer.
    followed: bool,
}

/// Which slot has which change.
#[derive(Clone, Copy, PartialEq)]
struct Written {
    slot: u64,
    sequence: u64,
}

/// Places that nobody needs any more, once the log and the slots so far are on the disk.
pub(super) struct Retired(Vec<Arc<Mutex<Place>>>);

/// Whether the value of a record is kept in slots.
pub(super) fn fits(record: &Record) -> bool {
    record.body().len() >= SMALLEST && record.fields().len() <= MARK - FIXED
}

/// How long a slot is for a value of this many bytes.
fn slot_size(body: usize) -> u64 {
    let bytes = (PAGE + body) as u64;
    let step = (bytes.next_power_of_two() / 16).max(PAGE as u64);
    bytes.next_multiple_of(step)
}

impl Slots {
    /// Opens the files of a folder, and puts what they hold to what was found.
    pub fn open(folder: &Path, found: &mut Found) -> Result<Slots> {
        let slots = Slots {
            folder: folder.to_path_buf(),
            files: Mutex::default(),
            places: RwLock::default(),
            retired: Mutex::default(),
            syncing: Mutex::default(),
        };
        for name in fs::read_dir(folder).map_err(|error| failed(folder, &error))?.flatten() {
            let name = name.file_name();
            let Some(size) = name.to_str().and_then(|name| name.strip_suffix(".slots")) else { continue };
            let path = folder.join(&name);
            let size = size.parse().ok().filter(|&size: &u64| size > PAGE as u64 && size.is_multiple_of(PAGE as u64));
            let size = size.ok_or_else(|| data_loss(format!("Journal {}: no size of a slot", path.display())))?;
            let file = Arc::new(SlotFile::open(path, size)?);
            for number in 0..file.room.lock().end {
                slots.find(&file, number, found)?;
            }
            slots.files.lock().insert(size, file);
        }
        Ok(slots)
    }

    fn find(&self, file: &Arc<SlotFile>, number: u64, found: &mut Found) -> Result<()> {
        let mut place =
            Place { file: file.clone(), number, newest: None, safe: None, syncing: None, followed: false };
        let entry = place.read(found).map_err(|error| failed(&file.path, &error))??;
        let place = Arc::new(Mutex::new(place));
        let old = match entry {
            Some(entry) => self.places.write().insert(entry, place),
            None => Some(place),
        };
        self.retired.lock().extend(old);
        Ok(())
    }

    /// After the log was read too: values that are gone, or are in the log, need no slots.
    pub fn settle(&self, found: &Found) {
        self.places.write().retain(|entry, place| {
            let mut inner = place.lock();
            let kept = found.values.get(entry).filter(|kept| inner.newest.is_some_and(|w| w.sequence == kept.sequence));
            inner.followed = kept.is_some_and(|kept| kept.followed);
            if kept.is_none() {
                self.retired.lock().push(place.clone());
            }
            kept.is_some()
        });
    }

    /// Writes a value down.
    pub fn write(&self, entry: &Entry, record: &Record) -> Result<()> {
        let size = slot_size(record.body().len());
        let known = self.places.read().get(entry).cloned();
        if let Some(known) = known {
            let mut known = known.lock();
            if known.file.size == size {
                return known.write(record);
            }
        }
        let mut place = SlotFile::place(self.file(size)?);
        place.write(record)?;
        let old = self.places.write().insert(entry.clone(), Arc::new(Mutex::new(place)));
        self.retired.lock().extend(old);
        Ok(())
    }

    /// Whether the slots have all of a value.
    pub fn has(&self, entry: &Entry) -> bool {
        self.places.read().get(entry).is_some_and(|place| !place.lock().followed)
    }

    /// The log has rows of a value that are newer than its slots.
    pub fn follow(&self, entry: &Entry) {
        if let Some(place) = self.places.read().get(entry) {
            place.lock().followed = true;
        }
    }

    /// The log says that a value is gone, or has it.
    pub fn lose(&self, entry: &Entry) {
        if self.places.read().contains_key(entry) {
            let place = self.places.write().remove(entry);
            self.retired.lock().extend(place);
        }
    }

    /// The log says that the values of a container are gone.
    pub fn forget(&self, container: &str) {
        let gone = |entry: &Entry| entry.container == container;
        let places = self.places.write().extract_if(.., |entry, _| gone(entry)).map(|(_, place)| place).collect::<Vec<_>>();
        self.retired.lock().extend(places);
    }

    /// Places of values that are gone, as the log so far says.
    pub fn retired(&self) -> Retired {
        Retired(std::mem::take(&mut *self.retired.lock()))
    }

    /// Lets the newest values survive a power cut. What the log said of retired places does so already.
    pub fn sync(&self, retired: Retired) -> Result<()> {
        let _alone = self.syncing.lock();
        let places: Vec<_> = self.places.read().values().filter(|place| place.lock().begin()).cloned().collect();
        let sizes: BTreeSet<u64> = places.iter().map(|place| place.lock().file.size).collect();
        let files: Vec<_> = self.files.lock().values().cloned().collect();
        for file in files {
            let mut wiped = std::mem::take(&mut file.room.lock().wiped);
            if sizes.contains(&file.size) || !wiped.is_empty() {
                file.file.sync_data().map_err(|error| failed(&file.path, &error))?;
            }
            file.room.lock().free.append(&mut wiped);
        }
        for place in places {
            let mut place = place.lock();
            place.end().map_err(|error| failed(&place.file.path, &error))?;
        }
        for place in retired.0 {
            let place = place.lock();
            place.wipe().map_err(|error| failed(&place.file.path, &error))?;
        }
        Ok(())
    }

    fn file(&self, size: u64) -> Result<Arc<SlotFile>> {
        let mut files = self.files.lock();
        if let Some(file) = files.get(&size) {
            return Ok(file.clone());
        }
        let file = Arc::new(SlotFile::open(self.folder.join(format!("{size}.slots")), size)?);
        // Its name survives a power cut.
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(|error| failed(&file.path, &error))?;
        files.insert(size, file.clone());
        Ok(file)
    }
}

impl SlotFile {
    fn open(path: PathBuf, size: u64) -> Result<SlotFile> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let with_len = file.and_then(|file| file.metadata().map(|data| (file, data.len())));
        let (file, len) = with_len.map_err(|error| failed(&path, &error))?;
        let end = len.div_ceil(size.saturating_mul(SLOTS));
        let room = Mutex::new(Room { end, free: Vec::new(), wiped: Vec::new() });
        Ok(SlotFile { path, size, file, room })
    }

    /// A place that nobody has.
    fn place(file: Arc<SlotFile>) -> Place {
        let number = {
            let mut room = file.room.lock();
            room.free.pop().unwrap_or_else(|| {
                room.end += 1;
                room.end - 1
            })
        };
        Place { file, number, newest: None, safe: None, syncing: None, followed: false }
    }

    /// The bytes at an offset; none if the file ends before their end.
    fn read(&self, offset: u64, len: usize) -> io::Result<Option<Vec<u8>>> {
        if self.file.metadata()?.len() < offset.saturating_add(len as u64) {
            return Ok(None);
        }
        let mut bytes = vec![0; len]; // no more than the file has
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(Some(bytes))
    }
}

impl Place {
    fn offset(&self, slot: u64) -> u64 {
        (self.number * SLOTS + slot) * self.file.size
    }

    /// If it cannot be done, the newest value is what it was.
    fn write(&mut self, record: &Record) -> Result<()> {
        let taken = [self.newest, self.safe, self.syncing].map(|written| written.map(|written| written.slot));
        let slot = (0..SLOTS).find(|slot| !taken.contains(&Some(*slot))).unwrap_or(0); // three are less than four
        let offset = self.offset(slot);
        let written = self.file.file.write_all_at(record.body(), offset + PAGE as u64);
        let written = written.and_then(|()| self.file.file.write_all_at(&page(record), offset));
        written.map_err(|error| failed(&self.file.path, &error))?;
        self.newest = Some(Written { slot, sequence: record.sequence() });
        self.followed = false;
        Ok(())
    }

    /// Whether there is something to bring to the disk.
    fn begin(&mut self) -> bool {
        self.syncing = self.newest.filter(|&newest| self.safe != Some(newest));
        self.syncing.is_some()
    }

    /// What was to be brought to the disk is there.
    fn end(&mut self) -> io::Result<()> {
        let Some(synced) = self.syncing.take() else { return Ok(()) };
        self.file.file.write_all_at(&synced.sequence.to_le_bytes(), self.offset(synced.slot) + MARK as u64)?;
        self.safe = Some(synced);
        Ok(())
    }

    /// Gives the place back, with nothing in it.
    fn wipe(&self) -> io::Result<()> {
        for slot in 0..SLOTS {
            self.file.file.write_all_at(&[0; PAGE], self.offset(slot))?;
        }
        self.file.room.lock().wiped.push(self.number);
        Ok(())
    }

    /// Puts the newest complete value to what was found, and says whose it is if nothing newer was known.
    fn read(&mut self, found: &mut Found) -> io::Result<Result<Option<Entry>>> {
        let mut marked = 0;
        let mut heads = Vec::new();
        for slot in 0..SLOTS {
            let Some(page) = self.file.read(self.offset(slot), PAGE)? else { continue };
            marked = marked.max(number(&page[MARK..]));
            heads.extend(Head::read(&page).map(|head| (slot, head)));
        }
        heads.sort_by_key(|(_, head)| std::cmp::Reverse(head.sequence));
        let last = heads.first().map_or(0, |(_, head)| head.sequence);
        found.last = found.last.max(last).max(marked);
        for (slot, head) in heads {
            let room = self.file.size - PAGE as u64;
            let Some(len) = usize::try_from(head.len).ok().filter(|&len| len as u64 <= room) else { continue };
            let Some(body) = self.file.read(self.offset(slot) + PAGE as u64, len)? else { continue };
            if crc::masked(&body) != head.sum {
                continue;
            }
            if head.sequence < marked {
                break;
            }
            self.newest = Some(Written { slot, sequence: head.sequence });
            let named = |error: status::Error| data_loss(format!("Journal {}: {}", self.file.path.display(), error.message));
            return Ok(record::apply(&head.fields, &body, found).map_err(named));
        }
        if marked > 0 {
            let what = format!("Journal {}: value {} is damaged", self.file.path.display(), self.number);
            return Ok(Err(data_loss(what)));
        }
        Ok(Ok(None)) // it was the first value, and is not complete
    }
}

/// What a slot says of itself.
struct Head {
    fields: Vec<u8>,
    sequence: u64,
    len: u64,
    sum: u32,
}

impl Head {
    /// None if the page is not one of a slot.
    fn read(page: &[u8]) -> Option<Head> {
        let (len, bytes) = (number(&page[12..16]) as usize, number(&page[16..24]));
        let fields = page.get(FIXED..MARK)?.get(..len)?;
        if page[..8] != MAGIC || u64::from(crc::masked(&page[12..FIXED + len])) != number(&page[8..12]) {
            return None;
        }
        let sequence = record::sequence(fields)?;
        Some(Head { fields: fields.to_vec(), sequence, len: bytes, sum: number(&page[24..28]) as u32 })
    }
}

/// The page before a value.
fn page(record: &Record) -> [u8; PAGE] {
    let (fields, body) = (record.fields(), record.body());
    let mut page = [0; PAGE];
    page[..8].copy_from_slice(&MAGIC);
    page[12..16].copy_from_slice(&(fields.len() as u32).to_le_bytes());
    page[16..24].copy_from_slice(&(body.len() as u64).to_le_bytes());
    page[24..FIXED].copy_from_slice(&crc::masked(body).to_le_bytes());
    page[FIXED..FIXED + fields.len()].copy_from_slice(fields);
    let sum = crc::masked(&page[12..FIXED + fields.len()]);
    page[8..12].copy_from_slice(&sum.to_le_bytes());
    page
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

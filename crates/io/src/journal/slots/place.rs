//! The four slots of one value in a file, and the choice of the slot to overwrite.

use crate::crc;
use crate::fs::data_loss;
use crate::journal::record::{self, Record};
use crate::journal::{Entry, Found, damaged, failed};
use parking_lot::Mutex;
use status::Result;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// The number of slots of a value: the newest, the synced one, the one being synced, and one to write to.
const SLOTS: u64 = 4;
/// The size of the page before a value.
const PAGE: usize = 4096;
/// The magic number at the start of that page.
const MAGIC: [u8; 8] = *b"flowgri\x01";
/// The size of magic number, checksum of the description, lengths of description and value, checksum of the value.
const FIXED: usize = 8 + 4 + 4 + 8 + 4;
/// The position of the mark at the end of the page: the number of the change, if the slot is synced.
const MARK: usize = PAGE - 8;

/// The largest size of a slot.
const LARGEST: u64 = 1 << 60;
/// True if a page has space for the description of a record.
pub fn fits(record: &Record) -> bool {
    record.fields().len() <= MARK - FIXED
}

/// True if this is a valid size of slots.
pub fn is_size(size: &u64) -> bool {
    (PAGE as u64 + 1..LARGEST).contains(size) && size.is_multiple_of(PAGE as u64)
}

/// The size of the slots for a value of this many bytes.
pub fn slot_size(body: usize) -> u64 {
    let bytes = (PAGE + body) as u64;
    let step = (bytes.next_power_of_two() / 16).max(PAGE as u64);
    bytes.next_multiple_of(step)
}

/// A file with slots of one size.
pub struct SlotFile {
    path: PathBuf,
    size: u64,
    file: File,
    room: Mutex<Room>,
}

/// Places of a file that are free.
struct Room {
    end: u64,
    free: Vec<u64>,
    /// Places that are empty, but whose old content a power cut could restore.
    wiped: Vec<u64>,
}

/// The place of a value.
pub struct Place {
    file: Arc<SlotFile>,
    number: u64,
    newest: Option<Written>,
    safe: Option<Written>,
    syncing: Option<Written>,
    /// True if the log has newer rows.
    pub followed: bool,
}

/// The change in each slot.
#[derive(Clone, Copy, PartialEq)]
struct Written {
    slot: u64,
    sequence: u64,
}

impl SlotFile {
    /// Opens a file, or creates it.
    pub fn open(path: PathBuf, size: u64) -> Result<SlotFile> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let with_len = file.and_then(|file| file.metadata().map(|data| (file, data.len())));
        let (file, len) = with_len.map_err(|error| failed(&path, &error))?;
        let end = len.div_ceil(size.saturating_mul(SLOTS));
        let room = Mutex::new(Room { end, free: Vec::new(), wiped: Vec::new() });
        Ok(SlotFile { path, size, file, room })
    }

    /// A free place.
    pub fn place(file: Arc<SlotFile>) -> Place {
        let number = {
            let mut room = file.room.lock();
            room.free.pop().unwrap_or_else(|| {
                room.end += 1;
                room.end - 1
            })
        };
        Place::new(file, number)
    }

    /// All places of the file, free or not.
    pub fn places(file: &Arc<SlotFile>) -> impl Iterator<Item = Place> {
        (0..file.room.lock().end).map(|number| Place::new(file.clone(), number))
    }

    /// The size of its slots.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Makes wiped places survive a power cut; with `all`, everything that was written.
    pub fn sync(&self, all: bool) -> Result<()> {
        let mut wiped = std::mem::take(&mut self.room.lock().wiped);
        if !all && wiped.is_empty() {
            return Ok(());
        }
        let synced = self.file.sync_data().and_then(|()| self.free(&mut wiped));
        synced.map_err(|error| failed(&self.path, &error))
    }

    /// Frees places that are empty, and truncates the file after the last used place.
    fn free(&self, places: &mut Vec<u64>) -> io::Result<()> {
        let mut room = self.room.lock();
        room.free.append(places);
        room.free.sort_unstable();
        while room.end.checked_sub(1).is_some_and(|last| room.free.last() == Some(&last)) {
            room.free.pop();
            room.end -= 1;
        }
        let len = room.end * SLOTS * self.size;
        if self.file.metadata()?.len() > len { self.file.set_len(len) } else { Ok(()) }
    }

    /// The bytes at an offset, or none if the file ends before.
    fn read(&self, offset: u64, len: usize) -> io::Result<Option<Vec<u8>>> {
        if self.file.metadata()?.len() < offset.saturating_add(len as u64) {
            return Ok(None);
        }
        let mut bytes = vec![0; len]; // not more than the file has
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(Some(bytes))
    }
}

impl Place {
    fn new(file: Arc<SlotFile>, number: u64) -> Place {
        Place { file, number, newest: None, safe: None, syncing: None, followed: false }
    }

    /// The size of its slots.
    pub fn size(&self) -> u64 {
        self.file.size
    }

    /// The number of the change that it holds.
    pub fn sequence(&self) -> Option<u64> {
        self.newest.map(|newest| newest.sequence)
    }

    fn offset(&self, slot: u64) -> u64 {
        (self.number * SLOTS + slot) * self.file.size
    }

    fn put(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file.file.write_all_at(bytes, offset).map_err(|error| failed(&self.file.path, &error))
    }

    /// Writes a value. If this fails, the newest value stays what it was.
    pub fn write(&mut self, record: &Record) -> Result<()> {
        let taken = [self.newest, self.safe, self.syncing].map(|written| written.map(|written| written.slot));
        let slot = (0..SLOTS).find(|slot| !taken.contains(&Some(*slot))).unwrap_or(0); // at most three of the four are taken
        let offset = self.offset(slot);
        self.put(record.body(), offset + PAGE as u64)?;
        self.put(&page(record), offset)?;
        self.newest = Some(Written { slot, sequence: record.sequence() });
        self.followed = false;
        Ok(())
    }

    /// True if there is a value to sync.
    pub fn begin(&mut self) -> bool {
        self.syncing = self.newest.filter(|&newest| self.safe != Some(newest));
        self.syncing.is_some()
    }

    /// Records that the value that was being synced is on the disk.
    pub fn end(&mut self) -> Result<()> {
        let Some(synced) = self.syncing.take() else { return Ok(()) };
        self.put(&synced.sequence.to_le_bytes(), self.offset(synced.slot) + MARK as u64)?;
        self.safe = Some(synced);
        Ok(())
    }

    /// Wipes all slots but the newest, which is no longer needed from now on.
    pub fn wipe(&self) -> Result<()> {
        let newest = self.newest.map(|newest| newest.slot);
        newest.map_or(Ok(()), |slot| self.put(&[0; 8], self.offset(slot) + MARK as u64))?;
        let older = (0..SLOTS).filter(|&slot| Some(slot) != newest);
        older.map(|slot| self.offset(slot)).try_for_each(|offset| self.put(&[0; PAGE], offset))
    }

    /// Wipes the last slot and frees the place.
    pub fn leave(&self) -> Result<()> {
        if let Some(newest) = self.newest {
            self.put(&[0; PAGE], self.offset(newest.slot))?;
        }
        self.file.room.lock().wiped.push(self.number);
        Ok(())
    }

    /// Adds the newest complete value to `found`. Returns its entry if no newer one was known.
    pub fn read(&mut self, found: &mut Found) -> Result<Option<Entry>> {
        let file = self.file.clone();
        let (newest, marked) = self.newest(found).map_err(|error| failed(&file.path, &error))?;
        match newest {
            Some((slot, head, body)) if head.sequence >= marked => {
                self.newest = Some(Written { slot, sequence: head.sequence });
                record::apply(&head.fields, &body, found).map_err(|error| damaged(&file.path, &error))
            }
            // The first value of this place was never complete.
            None if marked == 0 => Ok(None),
            _ => Err(damaged(&file.path, &data_loss(format!("value {} is damaged", self.number)))),
        }
    }

    /// The newest complete slot, and the newest synced one.
    fn newest(&mut self, found: &mut Found) -> io::Result<(Option<(u64, Head, Vec<u8>)>, u64)> {
        let mut marked = 0;
        let mut heads = Vec::new();
        for slot in 0..SLOTS {
            let Some(page) = self.file.read(self.offset(slot), PAGE)? else { continue };
            let mark = number(&page[MARK..]);
            if mark > marked {
                marked = mark;
                self.safe = Some(Written { slot, sequence: mark });
            }
            heads.extend(Head::read(&page).map(|head| (slot, head)));
        }
        heads.sort_by_key(|(_, head)| std::cmp::Reverse(head.sequence));
        found.last = heads.iter().map(|(_, head)| head.sequence).fold(found.last.max(marked), u64::max);
        for (slot, head) in heads {
            let room = self.file.size - PAGE as u64;
            let Some(len) = usize::try_from(head.len).ok().filter(|&len| len as u64 <= room) else { continue };
            let Some(body) = self.file.read(self.offset(slot) + PAGE as u64, len)? else { continue };
            if crc::masked(&body) == head.sum {
                return Ok((Some((slot, head, body)), marked));
            }
        }
        Ok((None, marked))
    }
}

/// The description of a slot.
struct Head {
    fields: Vec<u8>,
    sequence: u64,
    len: u64,
    sum: u32,
}

impl Head {
    /// None if the page is not the first of a slot.
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

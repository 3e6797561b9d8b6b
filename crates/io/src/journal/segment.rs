//! Segments of the log. The header of a segment says how many bytes were synced. An invalid record before that
//! position is damage; one after it was being written when the process died or the power failed.

use super::record::Reading;
use super::{Found, damaged, failed};
use crate::crc;
use crate::fs::data_loss;
use status::Result;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The length of the header of a segment: magic number, synced bytes, checksum of both.
pub const START: u64 = 20;
/// The magic number at the start of a segment.
const MAGIC: [u8; 8] = *b"flowgrid";

pub fn path(folder: &Path, segment: u64) -> PathBuf {
    folder.join(format!("{segment:08}.journal"))
}

/// Creates a segment and syncs its name, because its records depend on it.
pub fn begin(folder: &Path, segment: u64) -> Result<File> {
    let path = path(folder, segment);
    let begun = OpenOptions::new().create_new(true).write(true).open(&path).and_then(|file| {
        mark(&file, START)?;
        file.sync_all()?;
        File::open(folder)?.sync_all()?;
        Ok(file)
    });
    begun.map_err(|error| failed(&path, &error))
}

/// Writes the number of synced bytes to the header.
pub fn mark(file: &File, synced: u64) -> io::Result<()> {
    let mut start = [MAGIC, synced.to_le_bytes()].concat();
    start.extend(crc::masked(&start).to_le_bytes());
    file.write_all_at(&start, 0)
}

/// The numbers of all segments, in order.
pub fn list(folder: &Path) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, &error))? {
        let name = entry.map_err(|error| failed(folder, &error))?.file_name();
        let number: Option<u64> = name.to_str().and_then(|name| name.strip_suffix(".journal")?.parse().ok());
        found.extend(number.filter(|&number| number < u64::MAX)); // the next number must exist
    }
    found.sort_unstable();
    Ok(found)
}

/// Applies the changes of a segment. The last segment is truncated after its last complete record and synced.
pub fn read(path: &Path, found: &mut Found, last: bool) -> Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(|error| failed(path, &error))?;
    let read = changes(&file, found, last);
    let complete = read.map_err(|error| damaged(path, &error))?;
    if !last {
        return Ok(());
    }
    file.set_len(complete).and_then(|()| file.sync_all()).map_err(|error| failed(path, &error))
}

/// The number of valid bytes: all, except in the last segment.
fn changes(file: &File, found: &mut Found, last: bool) -> Result<u64> {
    let unread = |error: io::Error| data_loss(error.to_string());
    let len = file.metadata().map_err(unread)?.len();
    if len == 0 || len < START && last {
        return Ok(0); // the segment was created and nothing more
    }
    let mut start = [0; START as usize];
    file.read_exact_at(&mut start, 0).map_err(unread)?;
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
    if last && len == START && start == [0; START as usize] {
        return Ok(0); // the power failed while it was created
    }
    if start[..8] != MAGIC || u64::from(crc::masked(&start[..16])) != number(&start[16..]) {
        return Err(data_loss("not a segment of a journal of this version"));
    }
    let synced = number(&start[8..16]);
    let mut reading = Reading::new(file, START, len).map_err(unread)?;
    loop {
        match reading.next(found) {
            Ok(true) => {}
            Ok(false) if len < synced => return Err(data_loss(format!("{len} bytes instead of at least {synced}"))),
            Err(_) if last && reading.is_torn() && reading.complete() >= synced => return Ok(reading.complete()),
            end => return end.map(|_| len),
        }
    }
}

//! Random-access reads of an object: small reads are extended by a read-ahead, large ones split into parallel
//! requests.

use super::place::Place;
use bytes::Bytes;
use futures_util::future::try_join_all;
use io::fs::RandomAccessFile;
use object_store::ObjectStoreExt;
use parking_lot::Mutex;
use status::Result;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct ObjectReader {
    place: Place,
    /// The size at the last check; files may grow.
    size: AtomicU64,
    /// The bytes of the last read-ahead.
    ahead: Mutex<Ahead>,
}

#[derive(Default)]
struct Ahead {
    begin: u64,
    bytes: Bytes,
}

impl Ahead {
    fn end(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }

    fn from(&self, offset: u64) -> Option<Bytes> {
        let inside = self.begin <= offset && offset < self.end();
        inside.then(|| self.bytes.slice((offset - self.begin) as usize..))
    }
}

impl ObjectReader {
    pub fn new(place: Place, size: u64) -> ObjectReader {
        ObjectReader { place, size: AtomicU64::new(size), ahead: Mutex::default() }
    }

    /// Bytes beyond `offset`; the size is checked again before the end of file is reported.
    fn left(&self, offset: u64) -> Result<u64> {
        let known = self.size.load(Ordering::Relaxed);
        if offset < known {
            return Ok(known - offset);
        }
        let size = super::head(&self.place)?.size;
        self.size.store(size, Ordering::Relaxed);
        Ok(size.saturating_sub(offset))
    }

    fn fetch(&self, range: Range<u64>) -> Result<Bytes> {
        self.place.wait(|store, key| async move { store.get_range(&key, range).await })
    }

    /// Bytes from `offset` on: from the read-ahead or from a new request, at least `need` unless the file ends.
    fn small(&self, offset: u64, need: usize) -> Result<Bytes> {
        let sizes = self.place.shared.sizes;
        let size = self.size.load(Ordering::Relaxed);
        let (begin, length) = {
            let ahead = self.ahead.lock();
            if let Some(bytes) = ahead.from(offset) {
                return Ok(bytes);
            }
            match size <= sizes.ahead as u64 {
                true => (0, sizes.ahead),
                // Sequential reads double the read-ahead each time.
                false if offset == ahead.end() => (offset, (2 * ahead.bytes.len()).clamp(sizes.ahead, sizes.part)),
                false => (offset, sizes.ahead),
            }
        };
        let end = (begin + length.max(need) as u64).min(size);
        let bytes = self.fetch(begin..end)?;
        *self.ahead.lock() = Ahead { begin, bytes: bytes.clone() };
        let skip = ((offset - begin) as usize).min(bytes.len());
        Ok(bytes.slice(skip..))
    }

    /// Runs up to `parallel` requests at the same time.
    fn large(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let sizes = self.place.shared.sizes;
        let mut done = 0;
        for window in buffer.chunks_mut(sizes.part * sizes.parallel) {
            let begin = offset + done as u64;
            let end = begin + window.len() as u64;
            let ranges: Vec<Range<u64>> =
                (begin..end).step_by(sizes.part).map(|at| at..(at + sizes.part as u64).min(end)).collect();
            let pieces = self.place.wait(|store, key| async move {
                try_join_all(ranges.into_iter().map(|range| store.get_range(&key, range))).await
            })?;
            let mut filled = 0;
            for piece in pieces {
                let count = piece.len().min(window.len() - filled);
                window[filled..filled + count].copy_from_slice(&piece[..count]);
                filled += count;
            }
            done += filled;
            if filled < window.len() {
                break;
            }
        }
        Ok(done)
    }
}

impl RandomAccessFile for ObjectReader {
    fn size(&self) -> Result<u64> {
        Ok(self.size.load(Ordering::Relaxed))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let count = self.left(offset)?.min(buffer.len() as u64) as usize;
        if count > self.place.shared.sizes.part {
            return self.large(offset, &mut buffer[..count]);
        }
        let mut done = 0;
        while done < count {
            let bytes = self.small(offset + done as u64, count - done)?;
            if bytes.is_empty() {
                break;
            }
            let more = bytes.len().min(count - done);
            buffer[done..done + more].copy_from_slice(&bytes[..more]);
            done += more;
        }
        Ok(done)
    }
}

//! Lazily materialised bytes: one element, repeated.
//!
//! Initial values of variables are usually constant, and so are the slots an optimizer creates for a variable. Such a
//! buffer stores one element and a length. It takes memory when it is first read or written, and is sent without
//! being materialised.

use crate::Buffer;
use bytes::Bytes;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of buffers that are not materialised yet. They count as allocated, so that a request that does not fit is an
/// error of the op that makes it, not of a later reader.
static PROMISED: AtomicUsize = AtomicUsize::new(0);

/// Length of the longest element, a complex128.
const WIDEST: usize = 16;
/// Length of the pieces in which the bytes are sent: about what the transport takes at once, and a multiple of every
/// element size.
const PIECE: usize = 480 << 10;

/// `len` bytes. Invariant: `element`'s length divides `WIDEST`.
pub(crate) struct Uniform {
    /// The element, repeated to fill 16 bytes.
    pattern: [u8; WIDEST],
    len: usize,
    made: OnceLock<Buffer>,
    /// The share of `PROMISED` that belongs to this buffer; zero once it is materialised.
    promised: AtomicUsize,
}

impl Uniform {
    /// `None` if the length of the element does not divide `WIDEST`.
    pub fn new(element: &[u8], len: usize) -> Option<Uniform> {
        let even = !element.is_empty() && WIDEST.is_multiple_of(element.len()) && len.is_multiple_of(element.len());
        even.then(|| {
            let mut pattern = [0; WIDEST];
            pattern.chunks_exact_mut(element.len()).for_each(|place| place.copy_from_slice(element));
            Uniform { pattern, len, made: OnceLock::new(), promised: AtomicUsize::new(0) }
        })
    }

    /// Reserves memory for the bytes; `None` if the machine cannot provide them in addition to what is reserved
    /// already.
    pub fn promised(self, has_room: fn(usize) -> bool) -> Option<Uniform> {
        let before = PROMISED.fetch_add(self.len, Ordering::Relaxed);
        self.promised.store(self.len, Ordering::Relaxed);
        has_room(self.len.saturating_add(before)).then_some(self)
    }

    /// Releases the reservation, because the bytes are materialised or dropped.
    fn settle(&self) {
        PROMISED.fetch_sub(self.promised.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// The bytes, materialised by the first call.
    ///
    /// # Panics If memory is exhausted. It was checked when the buffer was created, so another process must have
    /// taken it since.
    pub fn made(&self) -> &Buffer {
        self.made.get_or_init(|| {
            self.settle();
            self.make().expect("no memory is left for the values of a tensor")
        })
    }

    /// The bytes, if they are materialised.
    pub fn if_made(&self) -> Option<&Buffer> {
        self.made.get()
    }

    /// Moves the bytes out, materialising them if necessary; `None` if memory is exhausted.
    pub fn take(&mut self) -> Option<Buffer> {
        self.made.take().or_else(|| self.make())
    }

    /// A new copy of the bytes; `None` if memory is exhausted.
    pub fn make(&self) -> Option<Buffer> {
        if self.pattern == [0; WIDEST] {
            return Buffer::zeroed(self.len);
        }
        let mut buffer = Buffer::scratch(self.len)?;
        self.copy_to(0, buffer.bytes_mut()?);
        Some(buffer)
    }

    /// Writes the bytes from offset `start` on to `out`.
    pub fn copy_to(&self, start: usize, out: &mut [u8]) {
        let mut block = [0; 256 * WIDEST];
        block.chunks_exact_mut(WIDEST).for_each(|place| place.copy_from_slice(&self.from(start)));
        for place in out.chunks_mut(block.len()) {
            place.copy_from_slice(&block[..place.len()]);
        }
    }

    /// The bytes `start..start + len`.
    pub fn slice(&self, start: usize, len: usize) -> Uniform {
        Uniform { pattern: self.from(start), len, made: OnceLock::new(), promised: AtomicUsize::new(0) }
    }

    /// The bytes as consecutive pieces that share the memory of the first one.
    pub fn to_pieces(&self) -> Vec<Bytes> {
        let mut first = vec![0; self.len.min(PIECE)];
        self.copy_to(0, &mut first);
        let first = Bytes::from(first);
        let mut pieces = vec![first.clone(); self.len / PIECE];
        pieces.extend(Some(first.slice(..self.len % PIECE)).filter(|rest| !rest.is_empty()));
        pieces
    }

    /// The pattern rotated to begin at offset `start`.
    fn from(&self, start: usize) -> [u8; WIDEST] {
        let mut pattern = self.pattern;
        pattern.rotate_left(start % WIDEST);
        pattern
    }
}

impl Drop for Uniform {
    fn drop(&mut self) {
        self.settle();
    }
}

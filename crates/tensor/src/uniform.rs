//! Bytes that are one element over and over: nobody makes them before somebody looks at them.
//!
//! Initial values of variables are most often of this kind, and so is what an optimizer keeps beside a variable that
//! has not been trained yet. They cost nothing until they are read or written, and can be sent as they are.

use crate::Buffer;
use bytes::Bytes;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that nobody has made yet and somebody may want to see: memory that is as good as given away.
static PROMISED: AtomicUsize = AtomicUsize::new(0);

/// The longest element.
const WIDEST: usize = 16;
/// How long the pieces are in which they are sent: about what the transport takes at once. A multiple of every element.
const PIECE: usize = 480 << 10;

/// `len` bytes. Invariant: `element`'s length divides `WIDEST`.
pub(crate) struct Uniform {
    /// The element as often as it fits.
    pattern: [u8; WIDEST],
    len: usize,
    made: OnceLock<Buffer>,
    /// How many of `PROMISED` are for this one, until it is made.
    promised: AtomicUsize,
}

impl Uniform {
    /// None if elements of that length cannot be repeated evenly.
    pub fn new(element: &[u8], len: usize) -> Option<Uniform> {
        let even = !element.is_empty() && WIDEST.is_multiple_of(element.len()) && len.is_multiple_of(element.len());
        even.then(|| {
            let mut pattern = [0; WIDEST];
            pattern.chunks_exact_mut(element.len()).for_each(|place| place.copy_from_slice(element));
            Uniform { pattern, len, made: OnceLock::new(), promised: AtomicUsize::new(0) }
        })
    }

    /// Puts memory for the bytes aside, in thought; none if the machine has no room for them and what was promised before.
    pub fn promised(self, has_room: fn(usize) -> bool) -> Option<Uniform> {
        let before = PROMISED.fetch_add(self.len, Ordering::Relaxed);
        self.promised.store(self.len, Ordering::Relaxed);
        has_room(self.len.saturating_add(before)).then_some(self)
    }

    /// What was promised is made, or will not be.
    fn settle(&self) {
        PROMISED.fetch_sub(self.promised.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// The bytes, made at the first look.
    ///
    /// # Panics
    /// If there is no memory for them: it was put aside when this was made, so somebody else must have taken it.
    pub fn made(&self) -> &Buffer {
        self.made.get_or_init(|| {
            self.settle();
            self.make().expect("no memory is left for the values of a tensor")
        })
    }

    /// The bytes, if somebody has looked at them.
    pub fn if_made(&self) -> Option<&Buffer> {
        self.made.get()
    }

    /// Takes the bytes out, or makes them; none without memory.
    pub fn take(&mut self) -> Option<Buffer> {
        self.made.take().or_else(|| self.make())
    }

    /// The bytes once more; none without memory.
    pub fn make(&self) -> Option<Buffer> {
        if self.pattern == [0; WIDEST] {
            return Buffer::zeroed(self.len);
        }
        let mut buffer = Buffer::scratch(self.len)?;
        self.copy_to(0, buffer.bytes_mut()?);
        Some(buffer)
    }

    /// Writes the bytes from `start` on.
    pub fn copy_to(&self, start: usize, out: &mut [u8]) {
        let mut block = [0; 256 * WIDEST];
        block.chunks_exact_mut(WIDEST).for_each(|place| place.copy_from_slice(&self.from(start)));
        for place in out.chunks_mut(block.len()) {
            place.copy_from_slice(&block[..place.len()]);
        }
    }

    /// Part of the bytes.
    pub fn slice(&self, start: usize, len: usize) -> Uniform {
        Uniform { pattern: self.from(start), len, made: OnceLock::new(), promised: AtomicUsize::new(0) }
    }

    /// The bytes in order, all of them shared but those of the first piece.
    pub fn to_pieces(&self) -> Vec<Bytes> {
        let mut first = vec![0; self.len.min(PIECE)];
        self.copy_to(0, &mut first);
        let first = Bytes::from(first);
        let mut pieces = vec![first.clone(); self.len / PIECE];
        pieces.extend(Some(first.slice(..self.len % PIECE)).filter(|rest| !rest.is_empty()));
        pieces
    }

    /// The pattern as it goes on from this byte.
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

//! Aligned, shared bytes of tensors with copy-on-write, and the list of freed blocks they are allocated from.
//!
//! A buffer does not know shapes. Of element types it knows only size and alignment.
#![allow(unsafe_code)]

use crate::Element;
use crate::uniform::Uniform;
use bytes::Bytes;
#[cfg(target_os = "linux")]
use rustix::mm::{Advice, madvise};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Alignment of every block: one cache line, which is also what TensorFlow's kernels expect.
const ALIGN: usize = 64;
/// Values up to this size are stored in the `Buffer` itself.
const INLINE: usize = 16;
/// Buffers of equal elements from this size on are materialised lazily (`uniform.rs`); below it the bookkeeping costs
/// more than it saves.
const UNIFORM_FROM: usize = 4 << 20;

/// Shared bytes with copy-on-write: cloning shares them, writing copies them unless this is the only owner.
#[derive(Clone)]
pub struct Buffer(Repr);

#[derive(Clone)]
enum Repr {
    Inline {
        bytes: Inline,
        len: u8,
    },
    Block {
        block: Arc<Block>,
        offset: usize,
        len: usize,
    },
    /// Bytes of a received message; never written in place, because the message may be shared.
    Foreign(Bytes),
    /// One element repeated; materialised at the first read.
    Uniform(Arc<Uniform>),
}

#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Inline([u8; INLINE]);

impl Buffer {
    /// `len` zero bytes; `None` if memory is exhausted.
    pub fn zeroed(len: usize) -> Option<Buffer> {
        Buffer::with(len, true)
    }

    /// `len` bytes of unspecified content, for results that are overwritten completely. Skipping the zeroing of a
    /// large result saves a fifth of the time of an elementwise kernel.
    pub fn scratch(len: usize) -> Option<Buffer> {
        Buffer::with(len, false)
    }

    /// `len` bytes that repeat `element`. Large buffers take no memory until they are read or written. `None` if
    /// memory is exhausted, or if `len` is not a whole number of elements of 1, 2, 4, 8 or 16 bytes.
    pub fn uniform(element: &[u8], len: usize) -> Option<Buffer> {
        let uniform = Uniform::new(element, len)?;
        match len {
            _ if len < UNIFORM_FROM => uniform.make(),
            _ => uniform.promised(has_room).map(|uniform| Buffer(Repr::Uniform(Arc::new(uniform)))),
        }
    }

    /// Returns recycled blocks that stayed unused for `unused_for` to the operating system. Allocating a tensor does
    /// this too; a program that may allocate none for hours should call it periodically.
    pub fn give_back(unused_for: Duration) {
        let unused = RECYCLED.lock().map(|mut blocks| blocks.take_unused(Instant::now(), unused_for));
        unused.unwrap_or_default().into_iter().for_each(Block::free);
    }

    fn with(len: usize, clear: bool) -> Option<Buffer> {
        if len <= INLINE {
            return Some(Buffer(Repr::Inline { bytes: Inline([0; INLINE]), len: len as u8 }));
        }
        let block = Block::new(len, clear)?;
        Some(Buffer(Repr::Block { block: Arc::new(block), offset: 0, len }))
    }

    /// A view of received bytes; copies only if they are not aligned for elements of `align` bytes.
    pub fn from_bytes(bytes: Bytes, align: usize) -> Option<Buffer> {
        if bytes.len() > INLINE && (bytes.as_ptr() as usize).is_multiple_of(align.max(1)) {
            return Some(Buffer(Repr::Foreign(bytes)));
        }
        let mut buffer = Buffer::scratch(bytes.len())?;
        buffer.bytes_mut()?.copy_from_slice(&bytes);
        Some(buffer)
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Inline { len, .. } => *len as usize,
            Repr::Block { len, .. } => *len,
            Repr::Foreign(bytes) => bytes.len(),
            Repr::Uniform(uniform) => uniform.len(),
        }
    }

    /// True if the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The content; materialises a buffer of equal elements.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { bytes, len } => &bytes.0[..*len as usize],
            Repr::Block { block, offset, len } => &block.bytes()[*offset..*offset + *len],
            Repr::Foreign(bytes) => bytes,
            Repr::Uniform(uniform) => uniform.made().bytes(),
        }
    }

    /// The content as `Bytes` for a message; large buffers are shared, small ones copied.
    pub fn to_bytes(&self) -> Bytes {
        match &self.0 {
            Repr::Inline { .. } => Bytes::copy_from_slice(self.bytes()),
            Repr::Block { .. } => Bytes::from_owner(self.clone()),
            Repr::Foreign(bytes) => bytes.clone(),
            Repr::Uniform(uniform) => uniform.made().to_bytes(),
        }
    }

    /// The content as consecutive `Bytes` for a message. A buffer of equal elements is not materialised for this.
    pub fn to_pieces(&self) -> Vec<Bytes> {
        match &self.0 {
            Repr::Uniform(uniform) if uniform.if_made().is_none() => uniform.to_pieces(),
            _ => vec![self.to_bytes()],
        }
    }

    /// True if writing needs no copy because this is the only owner.
    pub fn is_unique(&mut self) -> bool {
        match &mut self.0 {
            Repr::Inline { .. } => true,
            Repr::Block { block, .. } => Arc::get_mut(block).is_some(),
            Repr::Foreign(_) => false,
            Repr::Uniform(uniform) => Arc::get_mut(uniform).is_some(),
        }
    }

    /// The content for writing; copied first if shared. `None` if memory for the copy is exhausted.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        if let Repr::Uniform(uniform) = &mut self.0 {
            *self = match Arc::get_mut(uniform) {
                Some(own) => own.take()?,
                None => uniform.make()?,
            };
        }
        if !self.is_unique() {
            let mut copy = Buffer::scratch(self.len())?;
            copy.bytes_mut()?.copy_from_slice(self.bytes());
            *self = copy;
        }
        match &mut self.0 {
            Repr::Inline { bytes, len } => Some(&mut bytes.0[..*len as usize]),
            Repr::Block { block, offset, len } => {
                Arc::get_mut(block).map(|block| &mut block.bytes_mut()[*offset..*offset + *len])
            }
            Repr::Foreign(_) | Repr::Uniform(_) => None,
        }
    }

    /// The bytes `start..start + len`; large buffers are shared, small ones copied.
    pub fn slice(&self, start: usize, len: usize) -> Buffer {
        assert!(start.checked_add(len).is_some_and(|end| end <= self.len()), "slice {start}+{len} of {}", self.len());
        match &self.0 {
            Repr::Block { block, offset, .. } if len > INLINE => {
                Buffer(Repr::Block { block: block.clone(), offset: offset + start, len })
            }
            Repr::Foreign(bytes) if len > INLINE => Buffer(Repr::Foreign(bytes.slice(start..start + len))),
            Repr::Uniform(uniform) if len > INLINE => match uniform.if_made() {
                Some(made) => made.slice(start, len),
                None => Buffer(Repr::Uniform(Arc::new(uniform.slice(start, len)))),
            },
            _ => {
                let mut small = Inline([0; INLINE]);
                match &self.0 {
                    Repr::Uniform(uniform) => uniform.copy_to(start, &mut small.0[..len]),
                    _ => small.0[..len].copy_from_slice(&self.bytes()[start..start + len]),
                }
                Buffer(Repr::Inline { bytes: small, len: len as u8 })
            }
        }
    }

    /// The content as a slice of `T`.
    pub fn elements<T: Element>(&self) -> &[T] {
        let bytes = self.bytes();
        let count = element_count::<T>(bytes);
        // SAFETY: `element_count` checked alignment and that the length is a whole number of elements.
        // `Element` is sealed to types for which the stored bytes are valid: every number, and bool,
        // whose bytes `Tensor` admits only when they are 0 or 1.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), count) }
    }

    /// The content as a mutable slice of `T`; `None` if memory for a copy of shared bytes is exhausted.
    pub fn elements_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        let bytes = self.bytes_mut()?;
        let count = element_count::<T>(bytes);
        // SAFETY: as in `elements`, and the borrow of `self` is exclusive.
        Some(unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), count) })
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

/// Number of elements of type `T` in the bytes. Panics if the bytes are not aligned for `T`.
fn element_count<T>(bytes: &[u8]) -> usize {
    let aligned = bytes.is_empty() || (bytes.as_ptr() as usize).is_multiple_of(align_of::<T>());
    assert!(aligned && bytes.len().is_multiple_of(size_of::<T>()), "misaligned buffer");
    bytes.len() / size_of::<T>()
}

/// An owned block of memory. Invariant: `start` points to `layout.size()` initialised bytes that this value owns.
pub(crate) struct Block {
    start: NonNull<u8>,
    layout: Layout,
    len: usize,
}

// SAFETY: a block is plain memory; access follows the usual borrow rules of its owner.
unsafe impl Send for Block {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Block {}

impl Block {
    pub(crate) fn new(len: usize, clear: bool) -> Option<Block> {
        if len >= RECYCLE_FROM
            && let Some(mut block) = RECYCLED.lock().ok().and_then(|mut blocks| blocks.take(len))
        {
            block.len = len;
            if clear {
                block.bytes_mut().fill(0);
            }
            return Some(block);
        }
        if len >= RECYCLE_FROM {
            let idle = RECYCLED.lock().map(|mut blocks| blocks.take_idle(Instant::now(), len)).unwrap_or_default();
            idle.into_iter().for_each(Block::free);
        }
        if !has_room(len) {
            return None;
        }
        let layout = Layout::from_size_align(size_class(len), ALIGN).ok()?;
        let start = match layout.size() >= MAPPED {
            true => map(layout.size())?,
            // SAFETY: the layout's size is not zero, since blocks are longer than INLINE.
            false => NonNull::new(unsafe { alloc_zeroed(layout) })?,
        };
        Some(Block { start, layout, len })
    }

    /// Frees the memory directly, without adding it to the list of recycled blocks.
    pub(crate) fn free(self) {
        let block = std::mem::ManuallyDrop::new(self);
        match block.layout.size() >= MAPPED {
            // SAFETY: `map` returned this many bytes at this address, and this was their only owner. A failure would
            // leak them.
            true => drop(unsafe { munmap(block.start.as_ptr().cast(), block.layout.size()) }),
            // SAFETY: allocated with this layout, and this was the only owner.
            false => unsafe { dealloc(block.start.as_ptr(), block.layout) },
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the invariant, and `len <= layout.size()`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let twin = Block { start: self.start, layout: self.layout, len: self.len };
        if self.layout.size() < RECYCLE_FROM {
            return twin.free();
        }
        let spare = match RECYCLED.lock() {
            Ok(mut blocks) => blocks.put(twin, Instant::now()),
            Err(_) => vec![twin],
        };
        spare.into_iter().for_each(Block::free);
    }
}

/// Blocks from this size on are mapped directly, with huge pages where the machine has them: the first touch of 256
/// MB then takes 128 page faults instead of 65,536. The general allocator would also keep such a block for one
/// thread.
const MAPPED: usize = 512 << 10;

/// Maps fresh, zeroed pages.
fn map(size: usize) -> Option<NonNull<u8>> {
    let (access, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping at a place the system chooses touches no memory that is in use.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), size, access, private) }.ok()?;
    #[cfg(target_os = "linux")]
    // SAFETY: advice about the mapping just made; it changes no byte, and without it pages are small.
    let _ = unsafe { madvise(start, size, Advice::LinuxHugepage) };
    NonNull::new(start.cast())
}

/// Freed blocks that wait for the next result of about their size: fresh pages cost as much time as the kernel that
/// fills them. Their bytes are initialised (with old values), so handing them out as scratch memory is sound.
static RECYCLED: Mutex<Recycled> = Mutex::new(Recycled::new());

/// Smaller blocks return to the general allocator.
const RECYCLE_FROM: usize = 32 << 10;
/// Limit for the recycled blocks below `EXACT`: the results of one step, all of them alive at once.
const RECYCLE_SMALL: usize = 512 << 20;
/// Limit for the recycled blocks from `EXACT` on.
const RECYCLE_LARGE: usize = 64 << 20;
/// A single block of up to this size is recycled even above `RECYCLE_LARGE`: a tensor that is received in every step.
/// Fresh pages for 256 MB take 30 ms, a third of the time it takes to receive them.
const RECYCLE_ONE: usize = 256 << 20;
/// A recycled block may be longer than the request by a quarter, but not by more than this: the result may live long.
const RECYCLE_SLACK: usize = 2 << 20;
/// Blocks from this size on are rounded up to 32 KiB only, not to a size class.
const EXACT: usize = 8 << 20;
/// When fresh memory is needed, blocks that stayed unused for this long are freed first.
const RECYCLE_IDLE: Duration = Duration::from_millis(100);
/// When fresh memory is needed, blocks that stayed unused for this long are freed up to the needed size.
const RECYCLE_RECENT: Duration = Duration::from_millis(10);
/// Requests above this size are checked against the available memory of the machine.
const LARGE: usize = 256 << 20;

pub(crate) struct Recycled {
    /// Size to blocks, each with the time it was freed, oldest first.
    blocks: BTreeMap<usize, VecDeque<(Instant, Block)>>,
    small: usize,
    large: usize,
}

impl Recycled {
    pub(crate) const fn new() -> Recycled {
        Recycled { blocks: BTreeMap::new(), small: 0, large: 0 }
    }

    /// The shortest block that fits; of equal ones the one freed last, which may still be in the cache.
    pub(crate) fn take(&mut self, len: usize) -> Option<Block> {
        if len < RECYCLE_FROM || self.blocks.is_empty() {
            return None;
        }
        let size = size_class(len);
        let (&found, _) = self.blocks.range(size..=size.saturating_add((size / 4).min(RECYCLE_SLACK))).next()?;
        self.remove(found, VecDeque::pop_back)
    }

    /// Removes the blocks that should be freed when `needed` fresh bytes are about to be allocated.
    pub(crate) fn take_idle(&mut self, now: Instant, needed: usize) -> Vec<Block> {
        let (mut idle, mut bytes) = (Vec::new(), 0);
        while let Some((since, size)) = self.oldest(0..=usize::MAX) {
            let limit = if bytes < needed { RECYCLE_RECENT } else { RECYCLE_IDLE };
            if now.saturating_duration_since(since) <= limit {
                break;
            }
            bytes += size;
            idle.extend(self.remove(size, VecDeque::pop_front));
        }
        idle
    }

    /// Removes the blocks that were freed longer than `unused_for` ago.
    pub(crate) fn take_unused(&mut self, now: Instant, unused_for: Duration) -> Vec<Block> {
        let mut unused = Vec::new();
        while let Some((since, size)) = self.oldest(0..=usize::MAX)
            && now.saturating_duration_since(since) > unused_for
        {
            unused.extend(self.remove(size, VecDeque::pop_front));
        }
        unused
    }

    /// Adds a block; returns the blocks to free, which may include the added one.
    pub(crate) fn put(&mut self, block: Block, now: Instant) -> Vec<Block> {
        let size = block.layout.size();
        if !(RECYCLE_FROM..=RECYCLE_ONE).contains(&size) {
            return vec![block];
        }
        let mut spare = Vec::new();
        let (kind, most) = match size < EXACT {
            true => (0..=EXACT - 1, RECYCLE_SMALL),
            false => (EXACT..=usize::MAX, RECYCLE_LARGE.max(size)),
        };
        while *self.kept(size) + size > most
            && let Some((_, oldest)) = self.oldest(kind.clone())
        {
            spare.extend(self.remove(oldest, VecDeque::pop_front));
        }
        *self.kept(size) += size;
        self.blocks.entry(size).or_default().push_back((now, block));
        spare
    }

    /// The byte counter for blocks of this size: those below `EXACT` and the others have separate limits.
    fn kept(&mut self, size: usize) -> &mut usize {
        if size < EXACT { &mut self.small } else { &mut self.large }
    }

    /// Time and size of the block in this size range that was freed first.
    fn oldest(&self, sizes: RangeInclusive<usize>) -> Option<(Instant, usize)> {
        self.blocks.range(sizes).filter_map(|(&size, blocks)| Some((blocks.front()?.0, size))).min()
    }

    fn remove(
        &mut self,
        size: usize,
        pop: fn(&mut VecDeque<(Instant, Block)>) -> Option<(Instant, Block)>,
    ) -> Option<Block> {
        let blocks = self.blocks.get_mut(&size)?;
        let (_, block) = pop(blocks)?;
        if blocks.is_empty() {
            self.blocks.remove(&size);
        }
        *self.kept(size) -= size;
        Some(block)
    }
}

/// Rounds a size up to an eighth of a power of two, so that results of about equal size share blocks. Sizes from
/// `EXACT` on are rounded to 32 KiB only: a larger remainder could cost a huge page that stays unused.
fn size_class(len: usize) -> usize {
    let step = match len {
        _ if len < RECYCLE_FROM => return len,
        _ if len < EXACT => (len.next_power_of_two() / 16).max(ALIGN),
        _ => RECYCLE_FROM,
    };
    len.checked_next_multiple_of(step).unwrap_or(len)
}

/// True if the machine can still provide `bytes`. Small requests are not checked, because asking costs a file read.
pub(crate) fn has_room(bytes: usize) -> bool {
    bytes <= LARGE || bytes <= available_memory()
}

/// Memory available without swapping or invoking the out-of-memory killer; `usize::MAX` if the system does not report
/// it.
fn available_memory() -> usize {
    let Ok(info) = std::fs::read_to_string("/proc/meminfo") else { return usize::MAX };
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kilobytes.map_or(usize::MAX, |kb| kb << 10)
}

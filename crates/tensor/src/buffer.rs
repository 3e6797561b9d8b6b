//! Bytes that tensors share: aligned, copied only when somebody else still looks at them.
//!
//! It knows nothing of shapes or element types
//! but their size and alignment.
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

/// Alignment of every block: a cache line, and what TensorFlow's kernels expect.
const ALIGN: usize = 64;
/// Values up to this size need no block of their own.
const INLINE: usize = 16;
/// From this size on it is worth a thought whether bytes that are all the same must be made at all.
const UNIFORM_FROM: usize = 4 << 20;

/// Shared bytes. Cloning shares them; writing copies them first unless this is the last owner.
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
    /// Bytes of a received message; never written.
    Foreign(Bytes),
    /// One element over and over; made when somebody looks.
    Uniform(Arc<Uniform>),
}

#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Inline([u8; INLINE]);

impl Buffer {
    /// `len` zero bytes; none if the machine has no room for them.
    pub fn zeroed(len: usize) -> Option<Buffer> {
        Buffer::with(len, true)
    }

    /// `len` bytes of unspecified content, for results that are written whole: sparing a large
    /// result the zeroing is worth a fifth of an elementwise kernel.
    pub fn scratch(len: usize) -> Option<Buffer> {
        Buffer::with(len, false)
    }

    /// `len` bytes that are `element` over and over. Many take no memory before somebody looks at them; none if the
    /// machine has no room for them anyway, or if they are no whole number of elements of 1, 2, 4, 8 or 16 bytes.
    pub fn uniform(element: &[u8], len: usize) -> Option<Buffer> {
        let uniform = Uniform::new(element, len)?;
        match len {
            _ if len < UNIFORM_FROM => uniform.make(),
            _ => uniform.promised(has_room).map(|uniform| Buffer(Repr::Uniform(Arc::new(uniform)))),
        }
    }

    /// Gives memory of former tensors back to the system that has been kept for new ones for so long in vain. New
    /// tensors do so on their way; a program that may make none for hours calls this now and then.
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

    /// A view of received bytes: no copy if they happen to be aligned for elements of `align` bytes.
    pub fn from_bytes(bytes: Bytes, align: usize) -> Option<Buffer> {
        if bytes.len() > INLINE && (bytes.as_ptr() as usize).is_multiple_of(align.max(1)) {
            return Some(Buffer(Repr::Foreign(bytes)));
        }
        let mut buffer = Buffer::scratch(bytes.len())?;
        buffer.bytes_mut()?.copy_from_slice(&bytes);
        Some(buffer)
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Inline { len, .. } => *len as usize,
            Repr::Block { len, .. } => *len,
            Repr::Foreign(bytes) => bytes.len(),
            Repr::Uniform(uniform) => uniform.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { bytes, len } => &bytes.0[..*len as usize],
            Repr::Block { block, offset, len } => &block.bytes()[*offset..*offset + *len],
            Repr::Foreign(bytes) => bytes,
            Repr::Uniform(uniform) => uniform.made().bytes(),
        }
    }

    /// The bytes as something a message can hold; shares large ones.
    pub fn to_bytes(&self) -> Bytes {
        match &self.0 {
            Repr::Inline { .. } => Bytes::copy_from_slice(self.bytes()),
            Repr::Block { .. } => Bytes::from_owner(self.clone()),
            Repr::Foreign(bytes) => bytes.clone(),
            Repr::Uniform(uniform) => uniform.made().to_bytes(),
        }
    }

    /// The bytes in order, as things a message can hold. Those of one element over and over are not made for this.
    pub fn to_pieces(&self) -> Vec<Bytes> {
        match &self.0 {
            Repr::Uniform(uniform) if uniform.if_made().is_none() => uniform.to_pieces(),
            _ => vec![self.to_bytes()],
        }
    }

    /// Whether writing would need no copy.
    pub fn is_unique(&mut self) -> bool {
        match &mut self.0 {
            Repr::Inline { .. } => true,
            Repr::Block { block, .. } => Arc::get_mut(block).is_some(),
            Repr::Foreign(_) => false,
            Repr::Uniform(uniform) => Arc::get_mut(uniform).is_some(),
        }
    }

    /// The bytes, to be written: copied first if shared. None if there is no room for the copy.
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

    /// Part of the bytes; shares large ones.
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

    /// The bytes as elements.
    pub fn elements<T: Element>(&self) -> &[T] {
        let bytes = self.bytes();
        let count = element_count::<T>(bytes);
        // SAFETY: `element_count` checked alignment and that the length is a whole number of elements.
        // `Element` is sealed to types for which the stored bytes are valid: every number, and bool,
        // whose bytes `Tensor` admits only when they are 0 or 1.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), count) }
    }

    /// The bytes as elements, to be written; none if there is no room for a copy that is needed.
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

/// How many elements the bytes hold; panics when they are not aligned for them.
fn element_count<T>(bytes: &[u8]) -> usize {
    let aligned = bytes.is_empty() || (bytes.as_ptr() as usize).is_multiple_of(align_of::<T>());
    assert!(aligned && bytes.len().is_multiple_of(size_of::<T>()), "misaligned buffer");
    bytes.len() / size_of::<T>()
}

/// Memory of its own. Invariant: `layout.size()` bytes at `start`, all initialised, owned by this value.
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

    /// Gives the memory back, not to the list of recycled blocks.
    pub(crate) fn free(self) {
        let block = std::mem::ManuallyDrop::new(self);
        match block.layout.size() >= MAPPED {
            // SAFETY: `map` gave so many bytes there, and this was their only owner. A failure would leak them.
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

/// Blocks from this size on are whole pages of their own, large ones where the machine has them: the first touch of
/// 256 MB is 128 faults then, not 65,536. The allocator would keep what it gives to one thread from the others.
const MAPPED: usize = 512 << 10;

/// Fresh pages, all zero.
fn map(size: usize) -> Option<NonNull<u8>> {
    let (access, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping at a place the system chooses touches no memory that is in use.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), size, access, private) }.ok()?;
    #[cfg(target_os = "linux")]
    // SAFETY: advice about the mapping just made; it changes no byte, and without it pages are small.
    let _ = unsafe { madvise(start, size, Advice::LinuxHugepage) };
    NonNull::new(start.cast())
}

/// Freed blocks kept for the next result of about their size, since fresh pages cost as much as the kernel
/// that fills them. Their bytes are initialised (old values), so handing them out as scratch is sound.
static RECYCLED: Mutex<Recycled> = Mutex::new(Recycled::new());

/// Blocks below this size are the allocator's business.
const RECYCLE_FROM: usize = 32 << 10;
/// At most so much memory is kept in blocks below `EXACT`: the results of a step, all of them alive at once.
const RECYCLE_SMALL: usize = 512 << 20;
/// At most so much is kept in longer ones, which are few,
const RECYCLE_LARGE: usize = 64 << 20;
/// or one block of up to this size: a tensor that comes again in every step. Fresh pages for 256 MB take 30 ms, a third of
/// what it takes to receive them.
const RECYCLE_ONE: usize = 256 << 20;
/// A block may be longer than what it is used for by a quarter, but not by more than this: it may be used for long.
const RECYCLE_SLACK: usize = 2 << 20;
/// Blocks from this size on are hardly longer than what they are made for.
const EXACT: usize = 8 << 20;
/// Blocks that nobody wanted for so long make room when fresh memory is needed.
const RECYCLE_IDLE: Duration = Duration::from_millis(100);
/// Blocks that nobody wanted for so long make room for as much as is needed.
const RECYCLE_RECENT: Duration = Duration::from_millis(10);
/// Above this size the machine is asked whether it has room at all.
const LARGE: usize = 256 << 20;

pub(crate) struct Recycled {
    /// By size; each with the time of its return, the oldest first.
    blocks: BTreeMap<usize, VecDeque<(Instant, Block)>>,
    small: usize,
    large: usize,
}

impl Recycled {
    pub(crate) const fn new() -> Recycled {
        Recycled { blocks: BTreeMap::new(), small: 0, large: 0 }
    }

    /// The shortest block that fits, of those the one that came last: it may still be in the cache.
    pub(crate) fn take(&mut self, len: usize) -> Option<Block> {
        if len < RECYCLE_FROM || self.blocks.is_empty() {
            return None;
        }
        let size = size_class(len);
        let (&found, _) = self.blocks.range(size..=size.saturating_add((size / 4).min(RECYCLE_SLACK))).next()?;
        self.remove(found, VecDeque::pop_back)
    }

    /// The blocks that were kept in vain, when so many fresh bytes are needed.
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

    /// The blocks that came back longer ago than this.
    pub(crate) fn take_unused(&mut self, now: Instant, unused_for: Duration) -> Vec<Block> {
        let mut unused = Vec::new();
        while let Some((since, size)) = self.oldest(0..=usize::MAX)
            && now.saturating_duration_since(since) > unused_for
        {
            unused.extend(self.remove(size, VecDeque::pop_front));
        }
        unused
    }

    /// Keeps the block; gives those that should be freed, and be it this one.
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

    /// How many bytes are kept in blocks of the kind of this one.
    fn kept(&mut self, size: usize) -> &mut usize {
        if size < EXACT { &mut self.small } else { &mut self.large }
    }

    /// When the oldest block of these sizes came, and its size.
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

/// Sizes are rounded up to eighths of a power of two, so that results of about equal size share blocks. Large ones are
/// not: the machine would give a large page for the rest, whoever uses it.
fn size_class(len: usize) -> usize {
    let step = match len {
        _ if len < RECYCLE_FROM => return len,
        _ if len < EXACT => (len.next_power_of_two() / 16).max(ALIGN),
        _ => RECYCLE_FROM,
    };
    len.checked_next_multiple_of(step).unwrap_or(len)
}

/// Whether the machine can still give so many bytes; only large amounts are worth the question.
pub(crate) fn has_room(bytes: usize) -> bool {
    bytes <= LARGE || bytes <= available_memory()
}

/// What the machine can still give without swapping or killing somebody; unlimited when it does not tell.
fn available_memory() -> usize {
    let Ok(info) = std::fs::read_to_string("/proc/meminfo") else { return usize::MAX };
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kilobytes.map_or(usize::MAX, |kb| kb << 10)
}

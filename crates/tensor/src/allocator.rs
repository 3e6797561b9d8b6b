//! A global allocator that recycles medium-sized blocks: message buffers before they become tensors, and temporary
//! storage of kernels. The memory of tensors themselves is recycled in `buffer.rs`.
//!
//! General-purpose allocators keep free lists per thread and hand out the block that was freed longest ago. In a
//! program that allocates and frees the same sizes in every step this turns a working set of some hundred kilobytes
//! into megabytes of touched pages. Here the block that was freed last is the next one handed out, to any thread: the
//! program touches less memory, and the block is still in the processor's cache.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Smaller blocks are passed to the wrapped allocator.
const FROM: usize = 64 << 10;
/// Larger blocks are passed to the wrapped allocator.
const TO: usize = 1 << 20;
/// Blocks with a larger alignment are passed to the wrapped allocator: those are tensors, which have a free list of
/// their own (`buffer.rs`).
const ALIGN: usize = 16;
/// Block sizes are rounded up to one of eight steps between two powers of two.
const STEPS: usize = 8;
/// The number of block sizes, each with a free list.
const CLASSES: usize = STEPS * (TO / FROM).ilog2() as usize + 1;
/// Upper bound of the bytes held in free lists.
const KEPT: usize = 16 << 20;
/// After this many frees, blocks that stayed unused since the last check return to the wrapped allocator.
const TIDY: u32 = 256;

/// An allocator that recycles blocks of 64 KiB to 1 MiB and passes every other request to a wrapped one.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: flowgrid_tensor::Recycling<std::alloc::System> = flowgrid_tensor::Recycling::new(std::alloc::System);
/// ```
pub struct Recycling<A> {
    other: A,
    free: Mutex<Free>,
}

/// The free lists, one per size class.
struct Free {
    lists: [List; CLASSES],
    kept: usize,
    /// Number of frees since the last call of `tidy`.
    returns: u32,
}

#[derive(Clone, Copy)]
struct List {
    /// Invariant: each link stands at the beginning of a free block of this list's size, which belongs to the list.
    last: Option<NonNull<Link>>,
    len: usize,
    /// The shortest length of the list since the last call of `tidy`: this many blocks were never needed.
    unused: usize,
}

struct Link {
    before: Option<NonNull<Link>>,
}

// SAFETY: the blocks belong to the lists, whichever thread holds them.
unsafe impl Send for Free {}

impl<A> Recycling<A> {
    /// Wraps `other`, from which all memory comes.
    pub const fn new(other: A) -> Recycling<A> {
        let list = List { last: None, len: 0, unused: 0 };
        Recycling { other, free: Mutex::new(Free { lists: [list; CLASSES], kept: 0, returns: 0 }) }
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes held in the free lists.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.free().kept
    }
}

/// The index of the free list for this layout; `None` if the wrapped allocator serves it.
fn class(layout: Layout) -> Option<usize> {
    if !(FROM..=TO).contains(&layout.size()) || layout.align() > ALIGN {
        return None;
    }
    let power = layout.size().ilog2();
    let beyond = layout.size() - (1 << power);
    Some((power - FROM.ilog2()) as usize * STEPS + beyond.div_ceil((1 << power) / STEPS))
}

/// The layout with which blocks of a size class are requested from the wrapped allocator.
fn layout(class: usize) -> Layout {
    let power = FROM << (class / STEPS);
    let size = power + class % STEPS * (power / STEPS);
    // SAFETY: the alignment is a power of two, and the size is far from overflow.
    unsafe { Layout::from_size_align_unchecked(size, ALIGN) }
}

impl List {
    fn push(&mut self, block: NonNull<u8>) {
        let link = block.cast();
        // SAFETY: the block is free, aligned and longer than a link, and no other reference to it exists.
        unsafe { link.write(Link { before: self.last }) };
        self.last = Some(link);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<NonNull<u8>> {
        let last = self.last?;
        // SAFETY: the invariant of the list.
        self.last = unsafe { last.as_ref() }.before;
        self.len -= 1;
        self.unused = self.unused.min(self.len);
        Some(last.cast())
    }
}

impl Free {
    fn pop(&mut self, class: usize) -> Option<NonNull<u8>> {
        let block = self.lists[class].pop()?;
        self.kept -= layout(class).size();
        Some(block)
    }

    /// Adds a block to its free list; false if the limit `KEPT` is reached and the caller must free it.
    fn push(&mut self, class: usize, block: NonNull<u8>) -> bool {
        self.returns += 1;
        let fits = self.kept + layout(class).size() <= KEPT;
        if fits {
            self.kept += layout(class).size();
            self.lists[class].push(block);
        }
        fits
    }

    /// Frees the blocks that stayed unused since the last call.
    fn tidy<A: GlobalAlloc>(&mut self, other: &A) {
        self.returns = 0;
        for class in 0..CLASSES {
            for _ in 0..self.lists[class].unused {
                let Some(block) = self.pop(class) else { break };
                // SAFETY: every block of this list was allocated by `other` with this layout.
                unsafe { other.dealloc(block.as_ptr(), layout(class)) };
            }
            self.lists[class].unused = self.lists[class].len;
        }
    }
}

// SAFETY: every block comes from the wrapped allocator, with a layout that depends only on the requested one and is
// at least as large and as aligned. A block is either in one free list or in use, never both. Nothing here panics or
// allocates.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Recycling<A> {
    unsafe fn alloc(&self, asked: Layout) -> *mut u8 {
        let Some(class) = class(asked) else {
            // SAFETY: the caller upholds the contract of `alloc`.
            return unsafe { self.other.alloc(asked) };
        };
        match self.free().pop(class) {
            Some(block) => block.as_ptr(),
            // SAFETY: the size of a class is not zero.
            None => unsafe { self.other.alloc(layout(class)) },
        }
    }

    unsafe fn alloc_zeroed(&self, asked: Layout) -> *mut u8 {
        let Some(class) = class(asked) else {
            // SAFETY: the caller upholds the contract of `alloc_zeroed`.
            return unsafe { self.other.alloc_zeroed(asked) };
        };
        match self.free().pop(class) {
            Some(block) => {
                // SAFETY: the block is at least as long as requested, and no other reference to it exists.
                unsafe { block.write_bytes(0, asked.size()) };
                block.as_ptr()
            }
            // SAFETY: the size of a class is not zero.
            None => unsafe { self.other.alloc_zeroed(layout(class)) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, asked: Layout) {
        let (Some(class), Some(start)) = (class(asked), NonNull::new(block)) else {
            // SAFETY: the caller upholds the contract of `dealloc`, and `alloc` passed this layout through.
            return unsafe { self.other.dealloc(block, asked) };
        };
        let mut free = self.free();
        if !free.push(class, start) {
            // SAFETY: `alloc` requested the block from there with this layout.
            unsafe { self.other.dealloc(block, layout(class)) };
        }
        if free.returns >= TIDY {
            free.tidy(&self.other);
        }
    }

    unsafe fn realloc(&self, block: *mut u8, asked: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises a size that is not zero and does not overflow with this alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, asked.align()) };
        match (class(asked), class(wanted)) {
            // SAFETY: the caller upholds the contract of `realloc`, and `alloc` passed this layout through.
            (None, None) => unsafe { self.other.realloc(block, asked, size) },
            (before, after) if before == after => block,
            _ => {
                // SAFETY: as above.
                let other = unsafe { self.alloc(wanted) };
                if !other.is_null() {
                    // SAFETY: the two blocks do not overlap, each is at least as long as the copy, and the old one is
                    // freed once.
                    unsafe {
                        other.copy_from_nonoverlapping(block, asked.size().min(size));
                        self.dealloc(block, asked);
                    }
                }
                other
            }
        }
    }
}

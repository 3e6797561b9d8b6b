//! Memory that comes and goes in every step, beside that of tensors: what is read of a message before it is a tensor, and
//! what a kernel notes down for itself.
//!
//! An allocator hands the block that came back last to nobody before it has gone through all that it has of this size, for
//! each thread: some hundred kilobytes in use become megabytes that are touched. Here the block that came back last is the
//! next one, for all threads: less memory, and it is still in the processor's cache.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Smaller blocks, and larger ones, are the other allocator's business,
const FROM: usize = 64 << 10;
const TO: usize = 1 << 20;
/// and so are those aligned to more than this: tensors, which keep what is free themselves (`buffer.rs`).
const ALIGN: usize = 16;
/// Sizes are rounded up to an eighth of the power of two below.
const STEPS: usize = 8;
const CLASSES: usize = STEPS * (TO / FROM).ilog2() as usize + 1;
/// At most so many bytes are kept.
const KEPT: usize = 16 << 20;
/// After so many returns blocks go that nobody took meanwhile.
const TIDY: u32 = 256;

/// An allocator that keeps blocks of 64 KiB to 1 MiB for whoever asks next, and has all else from another one.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: flowgrid_tensor::Recycling<std::alloc::System> = flowgrid_tensor::Recycling::new(std::alloc::System);
/// ```
pub struct Recycling<A> {
    other: A,
    free: Mutex<Free>,
}

/// Free blocks of each size.
struct Free {
    lists: [List; CLASSES],
    kept: usize,
    /// Since the lists were last looked through.
    returns: u32,
}

#[derive(Clone, Copy)]
struct List {
    /// Invariant: each link stands at the beginning of a free block of this list's size, which belongs to the list.
    last: Option<NonNull<Link>>,
    len: usize,
    /// The shortest the list has been since it was last looked through: so many nobody needed.
    unused: usize,
}

struct Link {
    before: Option<NonNull<Link>>,
}

// SAFETY: the blocks belong to the lists, whichever thread holds them.
unsafe impl Send for Free {}

impl<A> Recycling<A> {
    /// With everything from this allocator.
    pub const fn new(other: A) -> Recycling<A> {
        let list = List { last: None, len: 0, unused: 0 };
        Recycling { other, free: Mutex::new(Free { lists: [list; CLASSES], kept: 0, returns: 0 }) }
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many bytes are free here.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.free().kept
    }
}

/// Which list holds blocks for this layout, if any.
fn class(layout: Layout) -> Option<usize> {
    if !(FROM..=TO).contains(&layout.size()) || layout.align() > ALIGN {
        return None;
    }
    let power = layout.size().ilog2();
    let beyond = layout.size() - (1 << power);
    Some((power - FROM.ilog2()) as usize * STEPS + beyond.div_ceil((1 << power) / STEPS))
}

/// What blocks of a list are to the other allocator.
fn layout(class: usize) -> Layout {
    let power = FROM << (class / STEPS);
    let size = power + class % STEPS * (power / STEPS);
    // SAFETY: the alignment is a power of two, and the size is far from overflow.
    unsafe { Layout::from_size_align_unchecked(size, ALIGN) }
}

impl List {
    fn push(&mut self, block: NonNull<u8>) {
        let link = block.cast();
        // SAFETY: the block is free, aligned and longer than a link; nobody else knows it.
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

    /// Whether there was room for the block.
    fn push(&mut self, class: usize, block: NonNull<u8>) -> bool {
        self.returns += 1;
        let fits = self.kept + layout(class).size() <= KEPT;
        if fits {
            self.kept += layout(class).size();
            self.lists[class].push(block);
        }
        fits
    }

    /// Gives what nobody took since this was last called.
    fn tidy<A: GlobalAlloc>(&mut self, other: &A) {
        self.returns = 0;
        for class in 0..CLASSES {
            for _ in 0..self.lists[class].unused {
                let Some(block) = self.pop(class) else { break };
                // SAFETY: a block of this list came from there with this layout.
                unsafe { other.dealloc(block.as_ptr(), layout(class)) };
            }
            self.lists[class].unused = self.lists[class].len;
        }
    }
}

// SAFETY: blocks are those of the other allocator, with a layout that depends on the asked one alone, and at least as large
// and aligned; each is in a list or somebody's, never both. Nothing here panics or allocates.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Recycling<A> {
    unsafe fn alloc(&self, asked: Layout) -> *mut u8 {
        let Some(class) = class(asked) else {
            // SAFETY: the caller's promise.
            return unsafe { self.other.alloc(asked) };
        };
        match self.free().pop(class) {
            Some(block) => block.as_ptr(),
            // SAFETY: its size is not zero.
            None => unsafe { self.other.alloc(layout(class)) },
        }
    }

    unsafe fn alloc_zeroed(&self, asked: Layout) -> *mut u8 {
        let Some(class) = class(asked) else {
            // SAFETY: the caller's promise.
            return unsafe { self.other.alloc_zeroed(asked) };
        };
        match self.free().pop(class) {
            Some(block) => {
                // SAFETY: the block is at least as long as asked, and nobody else's.
                unsafe { block.write_bytes(0, asked.size()) };
                block.as_ptr()
            }
            // SAFETY: its size is not zero.
            None => unsafe { self.other.alloc_zeroed(layout(class)) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, asked: Layout) {
        let (Some(class), Some(start)) = (class(asked), NonNull::new(block)) else {
            // SAFETY: the caller's promise; `alloc` had it from there with this layout.
            return unsafe { self.other.dealloc(block, asked) };
        };
        let mut free = self.free();
        if !free.push(class, start) {
            // SAFETY: `alloc` had it from there with this layout.
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
            // SAFETY: the caller's promise; `alloc` had it from there with this layout.
            (None, None) => unsafe { self.other.realloc(block, asked, size) },
            (before, after) if before == after => block,
            _ => {
                // SAFETY: as above.
                let other = unsafe { self.alloc(wanted) };
                if !other.is_null() {
                    // SAFETY: two blocks that do not overlap, each at least as long; the first is given back once.
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

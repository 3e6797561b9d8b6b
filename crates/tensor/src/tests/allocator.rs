//! The recycling allocator: no block is handed out twice, and free lists are bounded and reused.

use crate::allocator::Recycling;
use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashMap;
use std::sync::Mutex;

/// The system allocator with a check that every block is freed with the layout it was allocated with.
#[derive(Default)]
struct Checked(Mutex<HashMap<usize, Layout>>);

impl Checked {
    /// Number of blocks in use.
    fn out(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

// SAFETY: the system's allocator.
unsafe impl GlobalAlloc for &Checked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { System.alloc(layout) };
        assert!(self.0.lock().unwrap().insert(block as usize, layout).is_none(), "handed out twice");
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        assert_eq!(self.0.lock().unwrap().remove(&(block as usize)), Some(layout));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) };
    }
}

/// A block with a mark in its first and last byte.
struct Held {
    start: *mut u8,
    layout: Layout,
    mark: u8,
}

impl Held {
    fn new<A: GlobalAlloc>(allocator: &A, layout: Layout, mark: u8, zeroed: bool) -> Held {
        // SAFETY: no layout here is empty, and the bytes are those asked for.
        unsafe {
            let start = if zeroed { allocator.alloc_zeroed(layout) } else { allocator.alloc(layout) };
            assert!(!start.is_null() && (start as usize).is_multiple_of(layout.align()));
            if zeroed {
                assert!(std::slice::from_raw_parts(start, layout.size()).iter().all(|&byte| byte == 0));
            }
            start.write_bytes(mark, layout.size());
            Held { start, layout, mark }
        }
    }

    fn resized<A: GlobalAlloc>(mut self, allocator: &A, size: usize) -> Held {
        // SAFETY: the block is held, with this layout.
        unsafe {
            self.start = allocator.realloc(self.start, self.layout, size);
            let same = self.layout.size().min(size);
            self.layout = Layout::from_size_align(size, self.layout.align()).unwrap();
            assert!(std::slice::from_raw_parts(self.start, same).iter().all(|&byte| byte == self.mark));
            self.start.write_bytes(self.mark, size);
        }
        self
    }

    fn release<A: GlobalAlloc>(self, allocator: &A) {
        // SAFETY: the block is held, with this layout, and given back once.
        unsafe {
            let bytes = std::slice::from_raw_parts(self.start, self.layout.size());
            assert!(bytes.iter().all(|&byte| byte == self.mark), "another owner wrote to this block");
            allocator.dealloc(self.start, self.layout);
        }
    }
}

fn bytes(size: usize) -> Layout {
    Layout::from_size_align(size, 1).unwrap()
}

#[test]
fn what_came_back_last_is_the_next() {
    let other = Checked::default();
    let allocator = Recycling::new(&other);
    let block = Held::new(&allocator, bytes(480 << 10), 1, false);
    let start = block.start;
    block.release(&allocator);
    assert_eq!(allocator.kept(), 480 << 10);
    for size in [(480 << 10) - 9, (449 << 10) + 1, 480 << 10] {
        let again = Held::new(&allocator, bytes(size), 2, false);
        assert_eq!((again.start, allocator.kept()), (start, 0), "{size} bytes");
        again.release(&allocator);
    }
    let other_size = Held::new(&allocator, bytes((480 << 10) + 1), 3, true);
    assert_ne!(other_size.start, start);
    other_size.release(&allocator);
}

#[test]
fn small_large_and_aligned_blocks_pass() {
    let other = Checked::default();
    let allocator = Recycling::new(&other);
    let layouts = [bytes((64 << 10) - 1), bytes((1 << 20) + 1), Layout::from_size_align(100 << 10, 64).unwrap()];
    for layout in layouts {
        Held::new(&allocator, layout, 1, true).resized(&allocator, layout.size() + 1000).release(&allocator);
    }
    // The first block grew into a size that is recycled.
    assert_eq!((other.out(), allocator.kept()), (1, 72 << 10));
}

#[test]
fn few_blocks_are_kept_and_unused_ones_are_freed() {
    let other = Checked::default();
    let allocator = Recycling::new(&other);
    let many: Vec<_> = (0..100).map(|mark| Held::new(&allocator, bytes(1 << 20), mark, false)).collect();
    many.into_iter().for_each(|block| block.release(&allocator));
    assert_eq!((other.out(), allocator.kept()), (16, 16 << 20));
    // Now the program uses another size.
    for mark in 0..=255 {
        Held::new(&allocator, bytes(64 << 10), mark, false).release(&allocator);
    }
    for mark in 0..=255 {
        Held::new(&allocator, bytes(64 << 10), mark, false).release(&allocator);
    }
    assert!(allocator.kept() <= 64 << 10, "{} bytes", allocator.kept());
    assert!(other.out() <= 1);
}

#[test]
fn threads_share_blocks_and_never_one_block() {
    let other = Checked::default();
    let allocator = Recycling::new(&other);
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let allocator = &allocator;
            scope.spawn(move || {
                for round in 0..200usize {
                    let sizes = [64 << 10, 70 << 10, (round % 10 + 6) * (10 << 10)];
                    let blocks = sizes.map(|size| Held::new(allocator, bytes(size), thread, false));
                    blocks.into_iter().for_each(|block| block.release(allocator));
                }
            });
        }
    });
    assert!(other.out() <= 4 * 3 * 2, "{} blocks for 12 in use", other.out());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Random sequences of allocating, growing, shrinking and freeing.
    #[test]
    fn any_order_of_calls(calls in prop::collection::vec((0usize..4, 0usize..8, 1usize..1_200_000, 0u32..8), 1..80)) {
        let other = Checked::default();
        let allocator = Recycling::new(&other);
        let mut held: Vec<Held> = Vec::new();
        for (at, (call, which, size, align)) in calls.into_iter().enumerate() {
            match (call, held.is_empty()) {
                (2, false) => {
                    let block = held.swap_remove(which % held.len());
                    held.push(block.resized(&allocator, size));
                }
                (3, false) => held.swap_remove(which % held.len()).release(&allocator),
                _ => held.push(Held::new(&allocator, Layout::from_size_align(size, 1 << align).unwrap(), at as u8, call == 1)),
            }
        }
        held.into_iter().for_each(|block| block.release(&allocator));
    }
}

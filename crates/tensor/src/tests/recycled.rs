//! Blocks that are kept for the next result of their size.

use crate::buffer::{Block, Recycled};
use std::time::{Duration, Instant};

fn keep(kept: &mut Recycled, len: usize) {
    let block = Block::new(len, false).expect("room");
    assert!(kept.put(block).is_none(), "{len} bytes are worth keeping");
}

#[test]
fn a_block_serves_again_for_its_size() {
    let mut kept = Recycled::new();
    keep(&mut kept, 100 << 10);
    assert!(kept.take(1 << 20).is_none());
    kept.take(100 << 10).expect("the block").free();
    assert!(kept.take(100 << 10).is_none(), "once");
}

#[test]
fn what_nobody_wanted_makes_room() {
    let mut kept = Recycled::new();
    keep(&mut kept, 100 << 10);
    keep(&mut kept, 1 << 20);
    assert!(kept.take_idle(Instant::now()).is_empty(), "a step may still want them");
    let idle = kept.take_idle(Instant::now() + Duration::from_secs(2));
    assert_eq!(idle.len(), 2);
    idle.into_iter().for_each(Block::free);
    assert!(kept.take(1 << 20).is_none() && kept.take(100 << 10).is_none());
}

//! The list of recycled blocks.

use crate::buffer::{Block, Recycled};
use std::time::{Duration, Instant};

fn keep(kept: &mut Recycled, len: usize, now: Instant) {
    let block = Block::new(len, false).expect("room");
    assert!(kept.put(block, now).is_empty(), "{len} bytes should be recycled");
}

#[test]
fn a_block_serves_again_for_its_size() {
    let mut kept = Recycled::new();
    keep(&mut kept, 100 << 10, Instant::now());
    assert!(kept.take(1 << 20).is_none());
    kept.take(100 << 10).expect("the block").free();
    assert!(kept.take(100 << 10).is_none(), "once");
}

#[test]
fn a_block_serves_for_what_is_a_little_shorter() {
    let (mut kept, now) = (Recycled::new(), Instant::now());
    [120 << 10, 112 << 10, 60 << 20].into_iter().for_each(|len| keep(&mut kept, len, now));
    assert!(kept.take(80 << 10).is_none() && kept.take(128 << 10).is_none() && kept.take(50 << 20).is_none());
    kept.take(100 << 10).expect("the shorter of two").free();
    assert!(kept.take(112 << 10).is_some_and(|block| kept.put(block, now).is_empty()), "the other is longer");
    let left = kept.take_idle(now + Duration::from_secs(2), 0);
    assert_eq!(left.len(), 2);
    left.into_iter().for_each(Block::free);
}

#[test]
fn unused_blocks_make_room() {
    let (mut kept, now) = (Recycled::new(), Instant::now());
    keep(&mut kept, 100 << 10, now);
    keep(&mut kept, 1 << 20, now);
    assert!(kept.take_idle(now, 1 << 20).is_empty(), "a step may still want them");
    let idle = kept.take_idle(now + Duration::from_secs(2), 0);
    assert_eq!(idle.len(), 2);
    idle.into_iter().for_each(Block::free);
    assert!(kept.take(1 << 20).is_none() && kept.take(100 << 10).is_none());
}

#[test]
fn what_was_wanted_a_moment_ago_makes_room_for_what_is_needed() {
    let (mut kept, now) = (Recycled::new(), Instant::now());
    (0..3).for_each(|_| keep(&mut kept, 1 << 20, now));
    let idle = kept.take_idle(now + Duration::from_millis(50), 2 << 20);
    assert_eq!(idle.len(), 2);
    idle.into_iter().for_each(Block::free);
    kept.take(1 << 20).expect("the third").free();
}

#[test]
fn all_results_of_a_step_are_kept_but_only_a_few_large_ones() {
    let (mut kept, now) = (Recycled::new(), Instant::now());
    let mut put =
        |len: usize| kept.put(Block::new(len, false).expect("room"), now).into_iter().map(Block::free).count();
    assert_eq!((0..500).map(|_| put(1 << 20)).sum::<usize>(), 0, "500 MB");
    assert_eq!((0..20).map(|_| put(1 << 20)).sum::<usize>(), 8, "all beyond 512 MB");
    assert_eq!((0..5).map(|_| put(20 << 20)).sum::<usize>(), 2, "all beyond 64 MB");
    assert_eq!(put(257 << 20), 1, "too large to be kept");
    assert_eq!(put(256 << 20), 3, "alone it is kept");
    assert_eq!(put(65 << 20), 1, "in its place");
    let left = kept.take_idle(now + Duration::from_secs(1), 0);
    assert_eq!(left.len(), 512 + 1);
    left.into_iter().for_each(Block::free);
}

#[test]
fn blocks_that_stay_unused_are_freed() {
    let (mut kept, now) = (Recycled::new(), Instant::now());
    let at = |seconds| now + Duration::from_secs(seconds);
    keep(&mut kept, 100 << 10, at(0));
    keep(&mut kept, 10 << 20, at(3));
    keep(&mut kept, 1 << 20, at(8));
    let unused = kept.take_unused(at(10), Duration::from_secs(5));
    assert_eq!(unused.len(), 2);
    unused.into_iter().for_each(Block::free);
    kept.take(1 << 20).expect("it was used two seconds ago").free();
    assert!(kept.take_unused(at(100), Duration::ZERO).is_empty());
}

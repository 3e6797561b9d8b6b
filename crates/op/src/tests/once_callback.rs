//! Callbacks that run at most once.

use crate::OnceCallback;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn counted() -> (OnceCallback, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    (
        OnceCallback::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }),
        calls,
    )
}

#[test]
fn clones_share_one_run() {
    let (callback, calls) = counted();
    let clone = callback.clone();
    assert!(clone.is_open());
    callback.run();
    clone.run();
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert!(!clone.is_open());
}

#[test]
fn a_withdrawn_callback_does_not_run() {
    let (callback, calls) = counted();
    callback.clone().withdraw();
    callback.run();
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    assert_eq!(Arc::strong_count(&calls), 1); // what it captured is freed
}

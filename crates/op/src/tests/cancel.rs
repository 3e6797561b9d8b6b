//! Cancellation notifies every waiting op once.

use crate::Cancel;
use status::{aborted, cancelled};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

#[test]
fn callbacks_run_once_with_the_first_reason() {
    let (cancel, reasons) = (Cancel::default(), Arc::new(Mutex::new(Vec::new())));
    for _ in 0..2 {
        let reasons = reasons.clone();
        cancel.register(move |reason| reasons.lock().unwrap().push(reason.clone())).unwrap();
    }
    assert!(!cancel.is_cancelled() && cancel.reason().is_none());
    cancel.cancel(cancelled!("first"));
    cancel.cancel(aborted!("second"));
    assert_eq!(*reasons.lock().unwrap(), [cancelled!("first"), cancelled!("first")]);
    assert!(cancel.is_cancelled());
    assert_eq!(cancel.reason(), Some(cancelled!("first")));
}

#[test]
fn a_cancelled_step_registers_nothing() {
    let cancel = Cancel::default();
    cancel.cancel(cancelled!("over"));
    let result = cancel.register(|_| panic!("must not run"));
    assert_eq!(result.unwrap_err(), cancelled!("over"));
}

#[test]
fn a_removed_callback_does_not_run() {
    let (cancel, calls) = (Cancel::default(), Arc::new(AtomicUsize::new(0)));
    let counted = calls.clone();
    let removed = cancel.register(|_| panic!("must not run")).unwrap();
    let remaining = cancel
        .register(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    assert!(cancel.deregister(removed));
    assert!(!cancel.deregister(removed));
    cancel.cancel(cancelled!("over"));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert!(!cancel.deregister(remaining)); // it has run
}

#[test]
fn a_callback_may_use_the_cancellation_state() {
    let cancel = Arc::new(Cancel::default());
    let inner = cancel.clone();
    cancel.register(move |_| assert!(inner.register(|_| ()).is_err())).unwrap();
    cancel.cancel(cancelled!("over"));
}

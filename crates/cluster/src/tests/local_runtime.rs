//! The runtime of a session in one process: background work, timers, and their end.

use crate::{LocalRuntime, Runtime};
use futures_channel::{mpsc, oneshot};
use futures_util::StreamExt;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(1000);

#[test]
fn work_goes_on_whenever_it_is_woken() {
    let runtime = LocalRuntime::default();
    let (numbers, mut received) = mpsc::unbounded::<i32>();
    let (done, sum) = channel();
    runtime.spawn(Box::pin(async move {
        let mut sum = 0;
        while let Some(number) = received.next().await {
            sum += number;
        }
        done.send(sum).expect("the test waits");
    }));
    (0..100).for_each(|number| numbers.unbounded_send(number).expect("the work reads"));
    drop(numbers);
    assert_eq!(sum.recv(), Ok(4950));
}

#[test]
fn sleeps_end_in_the_order_of_their_times() {
    let runtime = LocalRuntime::default();
    let (done, ended) = channel();
    let begin = Instant::now();
    for time in [30, 10, 20].map(Duration::from_millis) {
        let (sleep, done) = (runtime.sleep(time), done.clone());
        runtime.spawn(Box::pin(async move {
            sleep.await;
            done.send(time).expect("the test waits");
        }));
    }
    let order: Vec<_> = (0..3).map(|_| ended.recv().expect("a sleep ends")).collect();
    assert_eq!(order, [10, 20, 30].map(Duration::from_millis));
    assert!(begin.elapsed() >= Duration::from_millis(30));
}

#[test]
fn unfinished_work_is_dropped_with_the_runtime() {
    let runtime = LocalRuntime::default();
    let (held, mut dropped) = oneshot::channel::<()>();
    let (begun, begins) = channel();
    let sleep = runtime.sleep(LONG);
    runtime.spawn(Box::pin(async move {
        begun.send(()).expect("the test waits");
        sleep.await;
        drop(held);
    }));
    begins.recv().expect("the work begins");
    assert_eq!(dropped.try_recv(), Ok(None));
    drop(runtime);
    assert_eq!(dropped.try_recv(), Err(oneshot::Canceled));
}

#[test]
fn a_panic_ends_its_own_work_alone() {
    let runtime = LocalRuntime::default();
    let (done, ended) = channel();
    runtime.spawn(Box::pin(async { panic!("told to") }));
    runtime.spawn(Box::pin(async move { done.send(()).expect("the test waits") }));
    assert_eq!(ended.recv(), Ok(()));
}

#[test]
fn a_runtime_may_be_dropped_by_its_own_work() {
    let runtime = std::sync::Arc::new(LocalRuntime::default());
    let (done, ended) = channel();
    let (go, wait) = oneshot::channel::<()>();
    let own = runtime.clone();
    runtime.spawn(Box::pin(async move {
        wait.await.expect("told to go on");
        drop(own);
        done.send(()).expect("the test waits");
    }));
    drop(runtime);
    go.send(()).expect("the work waits");
    assert_eq!(ended.recv(), Ok(()));
}

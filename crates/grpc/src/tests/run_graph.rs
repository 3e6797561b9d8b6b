//! RunGraph on another task, and the ends of steps that it carries.

use crate::tests::wires::{Cable, End, FakeWorker, client, server, socket};
use cluster::{RemoteWorker, RunGraph, WorkerClient};
use status::Code;
use std::collections::HashMap;
use std::time::Duration;
use tensor::Tensor;

/// Longer than the end of a step waits for the next run.
const LONG: Duration = Duration::from_secs(1);

async fn run(remote: &RemoteWorker) {
    assert_eq!(remote.run_graph(RunGraph::default()).await.err().map(|error| error.code), Some(Code::Aborted));
}

#[tokio::test(start_paused = true)]
async fn feeds_and_fetches_cross_the_wire_unchanged() {
    let worker = FakeWorker::new();
    let remote = client(&socket(server(worker.clone())));
    let large = Tensor::vector(&(0..3_000_000).map(|i| i as f32).collect::<Vec<_>>());
    let small = Tensor::scalar(7i64);
    let named = |name: &str, tensor: &Tensor| (name.to_string(), tensor.clone());
    let both = [("a", &large), ("b", &small)].map(|(key, tensor)| (key.to_string(), Ok((tensor.clone(), false))));
    worker.by_key.send_replace(HashMap::from(both));
    let recv = ["b", "a"].map(String::from).to_vec();
    let send = vec![named("c", &large), named("d", &small)];
    let answer = remote.run_graph(RunGraph { recv, send, ..RunGraph::default() }).await.expect("an answer");
    let expected = [named("b", &small), named("a", &large), named("c", &large), named("d", &small)];
    assert_eq!(answer.recv.len(), expected.len());
    for ((key, tensor), (name, same)) in answer.recv.iter().zip(&expected) {
        let content = |tensor: &Tensor| tensor.buffer().map(|buffer| buffer.to_bytes());
        assert!(content(tensor) == content(same), "{name}");
        assert_eq!((key, tensor.shape(), tensor.dtype()), (name, same.shape(), same.dtype()));
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_run_carries_the_ends_of_steps() {
    let worker = FakeWorker::new();
    let remote = client(&socket(server(worker.clone())));
    remote.cleanup_graph(1).await.expect("sent");
    assert_eq!(*worker.ended.lock(), [1], "a task that may not accept the ends of steps gets its own call");
    run(&remote).await;
    for step in 2..5 {
        remote.cleanup_graph(step).await.expect("stored");
    }
    assert_eq!(*worker.ended.lock(), [1]);
    run(&remote).await;
    assert_eq!(*worker.ended.lock(), [1, 2, 3, 4]);
    tokio::time::sleep(LONG).await;
    assert_eq!(*worker.ended.lock(), [1, 2, 3, 4], "nothing is sent twice");
}

#[tokio::test(start_paused = true)]
async fn ends_of_steps_are_sent_soon_without_a_run() {
    let worker = FakeWorker::new();
    let remote = client(&socket(server(worker.clone())));
    run(&remote).await;
    for step in 0..1000 {
        remote.cleanup_graph(step).await.expect("stored");
    }
    tokio::time::sleep(LONG).await;
    let mut ended = worker.ended.lock().clone();
    ended.sort_unstable();
    assert_eq!(ended, (0..1000).collect::<Vec<_>>());
    remote.cleanup_graph(1000).await.expect("stored");
    tokio::time::sleep(LONG).await;
    assert_eq!(worker.ended.lock().last(), Some(&1000));
}

#[tokio::test(start_paused = true)]
async fn ends_of_steps_survive_a_run_that_is_lost() {
    let worker = FakeWorker::new();
    let socket = socket(server(worker.clone()));
    let remote = client(&socket);
    run(&remote).await;
    remote.cleanup_graph(5).await.expect("stored");
    let end = std::mem::replace(&mut *socket.end.lock(), End::Refused);
    socket.cable.send_replace(Cable::Closed);
    let lost = remote.run_graph(RunGraph::default()).await.err().map(|error| error.code);
    assert_eq!((lost, worker.ended.lock().len()), (Some(Code::Unavailable), 0));
    *socket.end.lock() = end;
    socket.cable.send_replace(Cable::Whole);
    run(&remote).await;
    assert_eq!(*worker.ended.lock(), [5]);
}

#[tokio::test(start_paused = true)]
async fn ends_of_steps_survive_a_task_that_does_not_answer() {
    let worker = FakeWorker::new();
    let socket = socket(server(worker.clone()));
    let remote = client(&socket);
    run(&remote).await;
    let end = std::mem::replace(&mut *socket.end.lock(), End::Refused);
    socket.cable.send_replace(Cable::Closed);
    remote.cleanup_graph(5).await.expect("stored");
    tokio::time::sleep(LONG).await;
    *socket.end.lock() = end;
    socket.cable.send_replace(Cable::Whole);
    remote.cleanup_graph(6).await.expect("stored");
    tokio::time::sleep(LONG).await;
    let mut ended = worker.ended.lock().clone();
    ended.sort_unstable();
    assert_eq!(ended, [5, 6]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_sends_what_is_left() {
    let worker = FakeWorker::new();
    let remote = client(&socket(server(worker.clone())));
    run(&remote).await;
    (0..100).for_each(|step| drop(futures_util::FutureExt::now_or_never(remote.cleanup_graph(step))));
    let _ = remote.delete_session(String::new()).await; // a fake worker has no sessions
    let mut ended = worker.ended.lock().clone();
    ended.sort_unstable();
    assert_eq!(ended, (0..100).collect::<Vec<_>>());
}

//! Runs of graphs on another task, and the ends of their steps.

use crate::tests::wires::{Cable, End, Shelf, client, server, socket};
use cluster::{RemoteWorker, RunGraph, WorkerClient};
use status::Code;
use std::collections::HashMap;
use std::time::Duration;
use tensor::Tensor;

/// Longer than the end of a step waits for the next one.
const LONG: Duration = Duration::from_secs(1);

async fn run(far: &RemoteWorker) {
    assert_eq!(far.run_graph(RunGraph::default()).await.err().map(|error| error.code), Some(Code::Aborted));
}

#[tokio::test(start_paused = true)]
async fn what_a_run_takes_and_gives_crosses_the_wire_unchanged() {
    let shelf = Shelf::new();
    let far = client(&socket(server(shelf.clone())));
    let large = Tensor::vector(&(0..3_000_000).map(|i| i as f32).collect::<Vec<_>>());
    let small = Tensor::scalar(7i64);
    let named = |name: &str, tensor: &Tensor| (name.to_string(), tensor.clone());
    let both = [("a", &large), ("b", &small)].map(|(key, tensor)| (key.to_string(), Ok((tensor.clone(), false))));
    shelf.by_key.send_replace(HashMap::from(both));
    let recv = ["b", "a"].map(String::from).to_vec();
    let send = vec![named("c", &large), named("d", &small)];
    let answer = far.run_graph(RunGraph { recv, send, ..RunGraph::default() }).await.expect("an answer");
    let expected = [named("b", &small), named("a", &large), named("c", &large), named("d", &small)];
    assert_eq!(answer.recv.len(), expected.len());
    for ((key, tensor), (name, same)) in answer.recv.iter().zip(&expected) {
        let content = |tensor: &Tensor| tensor.buffer().map(|buffer| buffer.to_bytes());
        assert!(content(tensor) == content(same), "{name}");
        assert_eq!((key, tensor.shape(), tensor.dtype()), (name, same.shape(), same.dtype()));
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_step_is_told_with_the_next_run() {
    let shelf = Shelf::new();
    let far = client(&socket(server(shelf.clone())));
    far.cleanup_graph(1).await.expect("told");
    assert_eq!(*shelf.ended.lock(), [1], "a task of which nothing is known is told at once");
    run(&far).await;
    for step in 2..5 {
        far.cleanup_graph(step).await.expect("noted");
    }
    assert_eq!(*shelf.ended.lock(), [1]);
    run(&far).await;
    assert_eq!(*shelf.ended.lock(), [1, 2, 3, 4]);
    tokio::time::sleep(LONG).await;
    assert_eq!(*shelf.ended.lock(), [1, 2, 3, 4], "nothing is told twice");
}

#[tokio::test(start_paused = true)]
async fn ends_of_steps_that_no_run_follows_are_told_soon() {
    let shelf = Shelf::new();
    let far = client(&socket(server(shelf.clone())));
    run(&far).await;
    for step in 0..1000 {
        far.cleanup_graph(step).await.expect("noted");
    }
    tokio::time::sleep(LONG).await;
    let mut told = shelf.ended.lock().clone();
    told.sort_unstable();
    assert_eq!(told, (0..1000).collect::<Vec<_>>());
    far.cleanup_graph(1000).await.expect("noted");
    tokio::time::sleep(LONG).await;
    assert_eq!(shelf.ended.lock().last(), Some(&1000));
}

#[tokio::test(start_paused = true)]
async fn ends_of_steps_survive_a_run_that_was_lost_on_its_way() {
    let shelf = Shelf::new();
    let socket = socket(server(shelf.clone()));
    let far = client(&socket);
    run(&far).await;
    far.cleanup_graph(5).await.expect("noted");
    let end = std::mem::replace(&mut *socket.end.lock(), End::Refused);
    socket.cable.send_replace(Cable::Closed);
    let lost = far.run_graph(RunGraph::default()).await.err().map(|error| error.code);
    assert_eq!((lost, shelf.ended.lock().len()), (Some(Code::Unavailable), 0));
    *socket.end.lock() = end;
    socket.cable.send_replace(Cable::Whole);
    run(&far).await;
    assert_eq!(*shelf.ended.lock(), [5]);
}

#[tokio::test(start_paused = true)]
async fn ends_of_steps_survive_a_task_that_does_not_answer_for_a_while() {
    let shelf = Shelf::new();
    let socket = socket(server(shelf.clone()));
    let far = client(&socket);
    run(&far).await;
    let end = std::mem::replace(&mut *socket.end.lock(), End::Refused);
    socket.cable.send_replace(Cable::Closed);
    far.cleanup_graph(5).await.expect("noted");
    tokio::time::sleep(LONG).await;
    *socket.end.lock() = end;
    socket.cable.send_replace(Cable::Whole);
    far.cleanup_graph(6).await.expect("noted");
    tokio::time::sleep(LONG).await;
    let mut told = shelf.ended.lock().clone();
    told.sort_unstable();
    assert_eq!(told, [5, 6]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_tells_what_is_left() {
    let shelf = Shelf::new();
    let far = client(&socket(server(shelf.clone())));
    run(&far).await;
    (0..100).for_each(|step| drop(futures_util::FutureExt::now_or_never(far.cleanup_graph(step))));
    let _ = far.delete_session(String::new()).await; // a shelf has no sessions
    let mut told = shelf.ended.lock().clone();
    told.sort_unstable();
    assert_eq!(told, (0..100).collect::<Vec<_>>());
}

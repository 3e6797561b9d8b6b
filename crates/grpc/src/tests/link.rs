//! Tasks that answer, refuse connections, stop answering and return.

use crate::tests::wires::{Cable, End, FakeWorker, PATIENCE, client, server, socket};
use cluster::{RecvTensor, RunGraph, WorkerClient};
use status::Code;
use std::sync::Arc;
use std::time::Duration;
use tensor::Tensor;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_tensor_crosses_the_wire_unchanged() {
    let worker = FakeWorker::new();
    let remote = client(&socket(server(worker.clone())));
    let values: Vec<f32> = (0..3_000_000).map(|i| i as f32).collect();
    worker.tensor.send_replace(Some(Ok((Tensor::vector(&values), true))));
    let (tensor, dead) = remote.recv_tensor(RecvTensor::default()).await.expect("received");
    assert_eq!((tensor.values::<f32>(), dead), (Ok(&values[..]), true));
    assert_eq!(remote.get_status().await, Ok(Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn a_call_may_take_an_hour() {
    let worker = FakeWorker::new();
    let remote = Arc::new(client(&socket(server(worker.clone()))));
    let start = Instant::now();
    let waiting = tokio::spawn({
        let remote = remote.clone();
        async move { remote.recv_tensor(RecvTensor::default()).await }
    });
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!waiting.is_finished(), "after {:?}", start.elapsed());
    worker.tensor.send_replace(Some(Ok((Tensor::scalar(7i32), false))));
    let (tensor, _) = waiting.await.expect("no panic").expect("received");
    assert_eq!(tensor.to_scalar::<i32>(), Ok(7));
}

#[tokio::test(start_paused = true)]
async fn all_calls_to_a_stopped_task_fail_in_time_and_name_it() {
    let socket = socket(End::Silent(Vec::new()));
    let remote = client(&socket);
    let start = Instant::now();
    let waits = (0..3).map(|step_id| remote.recv_tensor(RecvTensor { step_id, ..RecvTensor::default() }));
    for answer in futures_util::future::join_all(waits).await {
        let error = answer.expect_err("the task does not answer");
        assert_eq!(error.code, Code::Unavailable);
        let text = "Task /job:ps/replica:0/task:1 at 10.0.0.2:2222 does not answer: no sign of life for";
        assert!(error.message.starts_with(text), "{error}");
    }
    assert!(start.elapsed() <= PATIENCE + Duration::from_millis(10), "{:?}", start.elapsed());
    let worker = FakeWorker::new();
    worker.tensor.send_replace(Some(Ok((Tensor::scalar(1i32), false))));
    *socket.end.lock() = server(worker);
    assert!(remote.recv_tensor(RecvTensor::default()).await.is_ok(), "the task is back");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_cut_during_a_call_is_noticed_in_time() {
    for (cable, text) in [(Cable::Cut, "no sign of life for"), (Cable::Closed, "connection closed")] {
        let socket = socket(server(FakeWorker::new()));
        let remote = Arc::new(client(&socket));
        assert_eq!(remote.get_status().await, Ok(Vec::new()));
        let waiting = tokio::spawn({
            let remote = remote.clone();
            async move { remote.recv_tensor(RecvTensor::default()).await }
        });
        tokio::time::sleep(Duration::from_secs(60)).await;
        let start = Instant::now();
        socket.cable.send_replace(cable);
        let error = waiting.await.expect("no panic").expect_err("the connection is cut");
        assert!(start.elapsed() <= PATIENCE + Duration::from_millis(10), "{:?}", start.elapsed());
        assert!(error.code == Code::Unavailable && error.message.contains(text), "{error}");
        socket.cable.send_replace(Cable::Whole);
        assert_eq!(remote.get_status().await, Ok(Vec::new()), "healed");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_is_not_a_sign_of_life_for_another() {
    let remote = Arc::new(client(&socket(End::Lost)));
    let first = tokio::spawn({
        let remote = remote.clone();
        async move { remote.get_status().await }
    });
    tokio::time::sleep(PATIENCE / 5).await;
    let start = Instant::now();
    let error = remote.recv_tensor(RecvTensor::default()).await.expect_err("no task is there");
    assert_eq!(error.code, Code::Unavailable, "{error}");
    assert!(start.elapsed() <= PATIENCE + Duration::from_millis(10), "{:?}", start.elapsed());
    assert!(first.await.expect("no panic").is_err());
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_disconnected_client_end_soon_and_others_do_not() {
    let (worker, other) = (FakeWorker::new(), FakeWorker::new());
    let (cut, whole) = (socket(server(worker.clone())), socket(server(other.clone())));
    let (gone, there) = (client(&cut), client(&whole));
    let lost = tokio::spawn(async move { gone.recv_tensor(RecvTensor::default()).await });
    let waiting = tokio::spawn(async move { there.recv_tensor(RecvTensor::default()).await });
    tokio::time::sleep(Duration::from_secs(60)).await;
    let start = Instant::now();
    cut.cable.send_replace(Cable::Cut);
    worker.tensor.closed().await; // the server has dropped the request
    assert!(start.elapsed() <= 3 * PATIENCE + Duration::from_millis(10), "{:?}", start.elapsed());
    assert!(lost.await.expect("no panic").is_err());
    assert_eq!(other.tensor.receiver_count(), 1);
    waiting.abort();
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_fails_at_once() {
    let remote = client(&socket(End::Refused));
    let start = Instant::now();
    let error = remote.get_status().await.expect_err("refused");
    assert_eq!((error.code, start.elapsed()), (Code::Unavailable, Duration::ZERO));
    let text = "Task /job:ps/replica:0/task:1 at 10.0.0.2:2222 does not answer: connection refused";
    assert!(error.message.starts_with(text), "{error}");
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_other_task_keep_their_text_and_whether_they_are_derived() {
    let worker = FakeWorker::new();
    let remote = client(&socket(server(worker.clone())));
    let cause = status::invalid!("told to fail\n\t [[{{{{node x}}}}]]");
    for error in [cause.clone(), cause.derived(), status::unavailable!("not the transport")] {
        worker.tensor.send_replace(Some(Err(error.clone())));
        assert_eq!(remote.recv_tensor(RecvTensor::default()).await.err(), Some(error));
    }
    let derived = remote.run_graph(RunGraph::default()).await.err();
    assert_eq!(derived, Some(status::aborted!("a consequence").derived()));
}

//! Several tensors in one call: split at every byte, each as soon as it is there, and malformed bytes.

use crate::tests::wires::{Cable, FakeWorker, PATIENCE, client, server, socket};
use crate::wire::recv_batch::{BatchReader, Kind, failed, part, raw, whole};
use crate::wire::recv_tensor::{ReceivedTensor, encode, encode_within};
use bytes::Bytes;
use cluster::{RecvTensor, RemoteWorker, WorkerClient};
use status::{Code, Result};
use std::sync::Arc;
use std::time::Duration;
use tensor::Tensor;
use tokio::task::JoinHandle;
use tokio::time::Instant;

fn numbers(count: usize) -> Tensor {
    Tensor::vector(&(0..count).map(|i| i as f32).collect::<Vec<_>>())
}

/// The answers in these bytes, in the order in which they end.
fn read(count: usize, bytes: &[u8], step: usize) -> Result<Vec<(usize, Result<ReceivedTensor>)>> {
    let (mut reader, mut found) = (BatchReader::new(count), Vec::new());
    bytes.chunks(step).try_for_each(|bytes| reader.push(bytes, |place, answer| found.push((place, answer))))?;
    Ok(found)
}

#[test]
fn answers_are_separated_however_the_bytes_are_split() {
    let error = status::invalid!("told to fail").derived();
    let cut = encode_within(&numbers(700), false, 1, Some(1000), 500).unwrap();
    let parts = [
        whole(2, encode(&Tensor::scalar(7i32), true, 1, true).unwrap()),
        whole(0, cut),
        vec![failed(3, &error)],
        whole(1, encode(&numbers(5000), false, 1, true).unwrap()),
    ];
    let bytes = parts.concat().concat();
    for step in [1, 3, 16, 17, 1000, bytes.len()] {
        let mut found = read(4, &bytes, step).unwrap();
        assert_eq!(found.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [2, 0, 3, 1]);
        let dead = found.remove(0).1.unwrap();
        assert_eq!((dead.tensor.to_scalar::<i32>(), dead.is_dead), (Ok(7), true));
        assert_eq!(found[0].1.as_ref().unwrap().tensor.values::<f32>(), numbers(700).values::<f32>());
        assert_eq!(found[1].1.as_ref().err(), Some(&error));
        assert_eq!(found[2].1.as_ref().unwrap().tensor.values::<f32>(), numbers(5000).values::<f32>());
    }
}

#[test]
fn parts_of_several_answers_may_alternate() {
    let [first, second] = [3000, 4000].map(|count| encode(&numbers(count), false, 1, true).unwrap().pieces.concat());
    let half = |bytes: &[u8], kind, place| {
        let bytes = if kind == Kind::More { &bytes[..1000] } else { &bytes[1000..] };
        part(place, kind, vec![Bytes::copy_from_slice(bytes)]).concat()
    };
    let bytes = [
        half(&first, Kind::More, 0),
        half(&second, Kind::More, 1),
        half(&first, Kind::Last, 0),
        half(&second, Kind::Last, 1),
    ];
    let found = read(2, &bytes.concat(), 999).unwrap();
    assert_eq!(found[0].1.as_ref().unwrap().tensor.elements(), 3000);
    assert_eq!(found[1].1.as_ref().unwrap().tensor.elements(), 4000);
}

#[test]
fn malformed_answers_are_refused() {
    let answer = || encode(&numbers(9), false, 1, true).unwrap();
    let mut unknown = failed(0, &status::invalid!("x")).to_vec();
    unknown[9] = 9;
    let mut long = failed(0, &status::invalid!("x")).to_vec();
    long[1..5].copy_from_slice(&u32::MAX.to_be_bytes());
    let mut short = failed(0, &status::invalid!("x")).to_vec();
    short[1..5].copy_from_slice(&7u32.to_be_bytes());
    let twice = [whole(0, answer()), whole(0, answer())].concat().concat();
    let nothing = part(0, Kind::Last, Vec::new()).concat();
    let no_size = part(0, Kind::Raw, vec![Bytes::from_static(b"x")]).concat();
    let no_code = part(0, Kind::Failed, vec![Bytes::from_static(b"x")]).concat();
    let huge = [raw(0, usize::MAX).to_vec(), whole(0, answer()).concat()].concat();
    for bytes in [unknown, long, short, twice, nothing, no_size, no_code, huge, whole(1, answer()).concat()] {
        assert!(read(1, &bytes, 7).is_err(), "{bytes:?}");
    }
}

/// Requests keys at the same moment.
fn ask(remote: &Arc<RemoteWorker>, keys: &[&str]) -> Vec<JoinHandle<Result<(Tensor, bool)>>> {
    let ask = |&key: &&str| {
        let (remote, request) = (remote.clone(), RecvTensor { step_id: 1, key: key.to_string(), request_id: 0 });
        tokio::spawn(async move { remote.recv_tensor(request).await })
    };
    keys.iter().map(ask).collect()
}

/// A client that knows that its server accepts batches.
async fn introduced(worker: &Arc<FakeWorker>) -> (Arc<crate::tests::wires::Socket>, Arc<RemoteWorker>) {
    let socket = socket(server(worker.clone()));
    let remote = Arc::new(client(&socket));
    worker.tensor.send_replace(Some(Ok((Tensor::scalar(0i32), false))));
    remote.recv_tensor(RecvTensor::default()).await.expect("the first");
    (socket, remote)
}

fn put(worker: &FakeWorker, key: &str, answer: Result<(Tensor, bool)>) {
    worker.by_key.send_modify(|answers| drop(answers.insert(key.to_string(), answer)));
}

#[tokio::test(start_paused = true)]
async fn each_answer_arrives_as_soon_as_its_tensor_is_there() {
    let worker = FakeWorker::new();
    let (_socket, remote) = introduced(&worker).await;
    let mut waiting = ask(&remote, &["a", "b", "c", "d"]);
    let fault = status::invalid!("told to fail").derived();
    put(&worker, "d", Err(fault.clone()));
    assert_eq!(waiting.remove(3).await.unwrap().err(), Some(fault));
    put(&worker, "b", Ok((numbers(300_000), false)));
    let (tensor, _) = waiting.remove(1).await.unwrap().unwrap();
    assert_eq!(tensor.values::<f32>(), numbers(300_000).values::<f32>());
    // A request that is dropped does not affect the others.
    waiting.remove(0).abort();
    put(&worker, "c", Ok((Tensor::scalar(3i32), true)));
    let (tensor, dead) = waiting.remove(0).await.unwrap().unwrap();
    assert_eq!((tensor.to_scalar::<i32>(), dead), (Ok(3), true));
}

#[tokio::test(start_paused = true)]
async fn all_requests_fail_when_the_connection_is_cut() {
    for cable in [Cable::Cut, Cable::Closed] {
        let worker = FakeWorker::new();
        let (socket, remote) = introduced(&worker).await;
        let waiting = ask(&remote, &["a", "b", "c"]);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let start = Instant::now();
        socket.cable.send_replace(cable);
        for waiting in waiting {
            let error = waiting.await.unwrap().expect_err("the connection is cut");
            assert!(error.code == Code::Unavailable && error.message.contains("/job:ps/replica:0/task:1"), "{error}");
        }
        assert!(start.elapsed() <= PATIENCE + Duration::from_millis(10), "{:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn more_requests_than_one_call_carries() {
    let worker = FakeWorker::new();
    let (_socket, remote) = introduced(&worker).await;
    let keys: Vec<String> = (0..600).map(|i| i.to_string()).collect();
    let waiting = ask(&remote, &keys.iter().map(String::as_str).collect::<Vec<_>>());
    worker.by_key.send_modify(|answers| {
        answers.extend((0..600).map(|i| (i.to_string(), Ok((Tensor::scalar(i), false)))));
    });
    for (i, waiting) in waiting.into_iter().enumerate() {
        assert_eq!(waiting.await.unwrap().unwrap().0.to_scalar::<i32>(), Ok(i as i32));
    }
}

#[tokio::test(start_paused = true)]
async fn the_other_task_stops_when_all_requests_are_dropped() {
    let worker = FakeWorker::new();
    let (_socket, remote) = introduced(&worker).await;
    let waiting = ask(&remote, &["a", "b"]);
    while worker.by_key.receiver_count() < 2 {
        tokio::task::yield_now().await;
    }
    waiting.iter().for_each(JoinHandle::abort);
    while worker.by_key.receiver_count() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

//! Several tensors in one call: cut in every place, each as soon as it is there, and bytes that make no sense.

use crate::tests::wires::{Cable, PATIENCE, Shelf, client, server, socket};
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

/// What is read of these bytes, in the order in which it ends.
fn read(count: usize, bytes: &[u8], step: usize) -> Result<Vec<(usize, Result<ReceivedTensor>)>> {
    let (mut reader, mut found) = (BatchReader::new(count), Vec::new());
    bytes.chunks(step).try_for_each(|bytes| reader.push(bytes, |place, answer| found.push((place, answer))))?;
    Ok(found)
}

#[test]
fn answers_are_told_apart_however_they_are_cut() {
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
fn chunks_of_several_answers_may_alternate() {
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
fn what_makes_no_sense_is_refused() {
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

/// Asks for keys at the same moment.
fn ask(far: &Arc<RemoteWorker>, keys: &[&str]) -> Vec<JoinHandle<Result<(Tensor, bool)>>> {
    let ask = |&key: &&str| {
        let (far, request) = (far.clone(), RecvTensor { step_id: 1, key: key.to_string(), request_id: 0 });
        tokio::spawn(async move { far.recv_tensor(request).await })
    };
    keys.iter().map(ask).collect()
}

/// A client that knows already that its server takes several at once.
async fn introduced(shelf: &Arc<Shelf>) -> (Arc<crate::tests::wires::Socket>, Arc<RemoteWorker>) {
    let socket = socket(server(shelf.clone()));
    let far = Arc::new(client(&socket));
    shelf.tensor.send_replace(Some(Ok((Tensor::scalar(0i32), false))));
    far.recv_tensor(RecvTensor::default()).await.expect("the first");
    (socket, far)
}

fn put(shelf: &Shelf, key: &str, answer: Result<(Tensor, bool)>) {
    shelf.by_key.send_modify(|answers| drop(answers.insert(key.to_string(), answer)));
}

#[tokio::test(start_paused = true)]
async fn each_comes_as_soon_as_it_is_there() {
    let shelf = Shelf::new();
    let (_socket, far) = introduced(&shelf).await;
    let mut waiting = ask(&far, &["a", "b", "c", "d"]);
    let fault = status::invalid!("told to fail").derived();
    put(&shelf, "d", Err(fault.clone()));
    assert_eq!(waiting.remove(3).await.unwrap().err(), Some(fault));
    put(&shelf, "b", Ok((numbers(300_000), false)));
    let (tensor, _) = waiting.remove(1).await.unwrap().unwrap();
    assert_eq!(tensor.values::<f32>(), numbers(300_000).values::<f32>());
    // One who goes away takes nothing from the others.
    waiting.remove(0).abort();
    put(&shelf, "c", Ok((Tensor::scalar(3i32), true)));
    let (tensor, dead) = waiting.remove(0).await.unwrap().unwrap();
    assert_eq!((tensor.to_scalar::<i32>(), dead), (Ok(3), true));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_left_waiting_when_the_cable_is_cut() {
    for cable in [Cable::Cut, Cable::Closed] {
        let shelf = Shelf::new();
        let (socket, far) = introduced(&shelf).await;
        let waiting = ask(&far, &["a", "b", "c"]);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let start = Instant::now();
        socket.cable.send_replace(cable);
        for waiting in waiting {
            let error = waiting.await.unwrap().expect_err("the cable is gone");
            assert!(error.code == Code::Unavailable && error.message.contains("/job:ps/replica:0/task:1"), "{error}");
        }
        assert!(start.elapsed() <= PATIENCE + Duration::from_millis(10), "{:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn more_than_one_call_holds() {
    let shelf = Shelf::new();
    let (_socket, far) = introduced(&shelf).await;
    let keys: Vec<String> = (0..600).map(|i| i.to_string()).collect();
    let waiting = ask(&far, &keys.iter().map(String::as_str).collect::<Vec<_>>());
    shelf.by_key.send_modify(|answers| {
        answers.extend((0..600).map(|i| (i.to_string(), Ok((Tensor::scalar(i), false)))));
    });
    for (i, waiting) in waiting.into_iter().enumerate() {
        assert_eq!(waiting.await.unwrap().unwrap().0.to_scalar::<i32>(), Ok(i as i32));
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_nothing_any_more_is_forgotten_by_the_other_task() {
    let shelf = Shelf::new();
    let (_socket, far) = introduced(&shelf).await;
    let waiting = ask(&far, &["a", "b"]);
    while shelf.by_key.receiver_count() < 2 {
        tokio::task::yield_now().await;
    }
    waiting.iter().for_each(JoinHandle::abort);
    while shelf.by_key.receiver_count() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

//! RecvTensor read in chunks: split at every byte, cut off, and over a connection.

use super::wires::{Cable, FakeWorker, client, server, socket};
use crate::wire::recv_tensor::{encode_within, message, prefix};
use crate::wire::tensor_stream::{Head, Outgoing, encode, parse_head};
use bytes::Bytes;
use cluster::{OpenedTensor, RecvTensor, TensorStream, WorkerClient};
use status::{Code, Result};
use std::collections::VecDeque;
use std::future::poll_fn;
use tensor::{DType, Shape, Tensor};

fn floats(count: usize) -> Tensor {
    Tensor::vector(&(0..count).map(|i| i as f32).collect::<Vec<_>>())
}

fn content(tensor: &Tensor) -> &[u8] {
    tensor.buffer().expect("plain elements").bytes()
}

/// What is read from an answer that arrives in steps of `step` bytes; `None` if it is not streamed.
fn cut(bytes: &[u8], step: usize, raw: Option<usize>) -> Result<Option<(DType, Shape, Vec<u8>)>> {
    for end in (0..=bytes.len()).step_by(step).chain([bytes.len()]) {
        let large = match parse_head(&bytes[..end], raw, 2000) {
            Head::Incomplete => continue,
            Head::Ordinary => return Ok(None),
            Head::Large(large) => large,
        };
        let (mut rest, mut ready) = (large.content, VecDeque::new());
        rest.push(Bytes::copy_from_slice(&bytes[large.head..end]), &mut ready)?;
        for part in bytes[end..].chunks(step) {
            rest.push(Bytes::copy_from_slice(part), &mut ready)?;
        }
        rest.finish()?;
        return Ok(Some((large.dtype, large.shape, Vec::from(ready).concat())));
    }
    Ok(None)
}

#[test]
fn the_content_is_found_however_the_bytes_are_split() {
    let tensor = floats(600);
    for chunk in [1, 100, 2399, 2400, 5000] {
        for limit in [1000, usize::MAX] {
            let sent = encode_within(&tensor, false, 3, Some(chunk), limit).expect("encoded");
            let bytes = sent.pieces.concat();
            for step in [1, 6, 100, 10_000] {
                let (dtype, shape, found) = cut(&bytes, step, sent.raw).expect("read").expect("large");
                assert_eq!((dtype, &shape, &found[..]), (DType::F32, tensor.shape(), content(&tensor)));
            }
            for end in bytes.len() - 10..bytes.len() {
                assert!(cut(&bytes[..end], 64, sent.raw).is_err(), "cut at {end}");
            }
        }
    }
}

#[test]
fn small_dead_and_other_tensors_are_not_streamed() {
    let strings = Tensor::from_strings([3], vec![Bytes::from(vec![b'x'; 3000]); 3]).expect("strings");
    let bools = Tensor::vector(&[true; 3000]);
    for (tensor, dead) in [(floats(100), false), (floats(600), true), (strings, false), (bools, false)] {
        let sent = encode_within(&tensor, dead, 3, None, usize::MAX).expect("encoded");
        assert!(cut(&sent.pieces.concat(), 50, None).expect("read").is_none());
    }
}

#[test]
fn a_streamed_tensor_has_the_same_bytes_as_a_whole_one() {
    let tensor = floats(600);
    let whole = encode_within(&tensor, false, 3, None, usize::MAX).expect("encoded").pieces.concat();
    let Outgoing { first, raw } = encode(DType::F32, tensor.shape(), 3, true).expect("encoded");
    assert_eq!((raw, [&first[..], content(&tensor)].concat()), (None, whole));
    let huge = Shape::new(&[1 << 30]);
    let Outgoing { first, raw } = encode(DType::F32, &huge, 3, true).expect("encoded");
    assert_eq!(raw, Some(1 << 32));
    let Head::Large(large) = parse_head(&first, raw, 2000) else { panic!("the content follows") };
    assert_eq!((large.shape, large.head), (huge.clone(), first.len()));
    let mut ready = VecDeque::new();
    let mut rest = large.content;
    for _ in 0..3 {
        let piece = Bytes::from(vec![7; 10]);
        rest.push(prefix(10).expect("a prefix").freeze(), &mut ready).expect("a prefix");
        rest.push(piece, &mut ready).expect("a piece");
    }
    assert_eq!(ready.iter().map(Bytes::len).collect::<Vec<_>>(), [10, 10, 10]);
    assert!(encode(DType::F32, &huge, 3, false).err().expect("too large").message.contains("2GB protobuf limit"));
}

#[test]
fn malformed_answers_are_errors_and_never_panics() {
    let good = encode_within(&floats(600), false, 3, None, usize::MAX).expect("encoded").pieces.concat();
    for place in 0..40 {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[place] = value;
            let _ = (cut(&bad, 64, None), cut(&bad, 64, Some(2400)));
        }
    }
    assert!(cut(&[&good[..], &good[..]].concat(), 64, None).is_err());
    assert!(matches!(cut(&message(b"").expect("a message"), 1, Some(usize::MAX)), Ok(None)));
}

#[tokio::test]
async fn chunks_cross_a_connection_and_end_with_it() {
    let (worker, tensor) = (FakeWorker::new(), floats(8 << 20));
    worker.tensor.send_replace(Some(Ok((tensor.clone(), false))));
    let socket = socket(server(worker));
    let remote = client(&socket);
    let open = || async {
        match remote.open_tensor(RecvTensor::default()).await.expect("opened") {
            OpenedTensor::Stream(stream) => stream,
            OpenedTensor::Whole(_) => panic!("a tensor of 32 MB is streamed"),
        }
    };
    let next = async |stream: &mut TensorStream| poll_fn(|cx| stream.poll_next(cx)).await;
    let (mut stream, mut found) = (open().await, Vec::new());
    while let Some(chunk) = next(&mut stream).await.expect("a chunk") {
        found.extend_from_slice(&chunk);
    }
    assert!(found == content(&tensor), "the bytes are the same");
    let mut stream = open().await;
    assert!(next(&mut stream).await.expect("a chunk").is_some());
    socket.cable.send_replace(Cable::Closed);
    let error = loop {
        match next(&mut stream).await {
            Ok(chunk) => assert!(chunk.is_some(), "there is more than the window"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code, Code::Unavailable);
    assert!(error.message.contains("Task /job:ps/replica:0/task:1"), "{error}");
}

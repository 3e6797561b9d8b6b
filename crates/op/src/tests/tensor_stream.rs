//! Tensors that are read in chunks, and the tasks that read them without holding a thread.

use crate::{OnOpened, OpenedTensor, RemoteTensor, Spawn, TensorStream, poll_on};
use status::{Result, invalid};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker, ready};
use std::thread;
use tensor::{Bytes, DType, Shape, Tensor};

fn threads() -> Spawn {
    Arc::new(|work| drop(thread::spawn(work)))
}

/// A file of three chunks, or of two and an error; counts its reads.
fn file(is_broken: bool) -> (TensorStream, Arc<AtomicUsize>) {
    let reads = Arc::new(AtomicUsize::new(0));
    let (counter, caller) = (reads.clone(), thread::current().id());
    let stream = TensorStream::from_reads(DType::U8, Shape::new(&[6]), threads(), move || {
        assert_ne!(thread::current().id(), caller, "reads must not block the thread that polls");
        match counter.fetch_add(1, SeqCst) {
            number @ 0..2 => Ok(Some(Bytes::from(vec![number as u8; 2]))),
            2 if is_broken => Err(invalid!("the file is broken")),
            2 => Ok(Some(Bytes::from(vec![2; 2]))),
            _ => Ok(None),
        }
    });
    (stream, reads)
}

/// All bytes of a stream.
fn read(mut stream: TensorStream) -> Result<Vec<u8>> {
    let (send, result) = channel();
    let mut bytes = Vec::new();
    let collect = move |cx: &mut Context<'_>| {
        loop {
            match ready!(stream.poll_next(cx)) {
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => return Poll::Ready(Ok(std::mem::take(&mut bytes))),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    };
    poll_on(threads(), collect, move |bytes| send.send(bytes).expect("the test waits"));
    result.recv().expect("a result")
}

#[test]
fn a_file_is_read_chunk_by_chunk() {
    let (stream, reads) = file(false);
    assert_eq!((stream.dtype(), stream.shape()), (DType::U8, &Shape::new(&[6])));
    assert_eq!(read(stream), Ok(vec![0, 0, 1, 1, 2, 2]));
    assert_eq!(reads.load(SeqCst), 4);
    assert_eq!(read(file(true).0).map_err(|error| error.message), Err("the file is broken".to_string()));
}

#[test]
fn nothing_is_read_before_the_reader_pulls() {
    let (mut stream, reads) = file(false);
    assert_eq!(reads.load(SeqCst), 0);
    let (send, chunk) = channel();
    let first = move |cx: &mut Context<'_>| stream.poll_next(cx);
    poll_on(threads(), first, move |chunk| send.send(chunk).expect("the test waits"));
    assert_eq!(chunk.recv().expect("a chunk"), Ok(Some(Bytes::from_static(&[0, 0]))));
    assert_eq!(reads.load(SeqCst), 1, "one chunk is one read");
}

#[test]
fn dropping_a_stream_drops_its_source() {
    let source = Arc::new(());
    let held = source.clone();
    let stream = TensorStream::new(DType::U8, Shape::new(&[1]), move |_| {
        let _ = &held;
        Poll::Pending
    });
    assert_eq!(Arc::strong_count(&source), 2);
    drop(stream);
    assert_eq!(Arc::strong_count(&source), 1);
}

#[test]
fn the_work_is_dropped_before_its_result_is_passed_on() {
    let held = Arc::new(());
    let (work, (send, result)) = (held.clone(), channel());
    let count = move |()| send.send(Arc::strong_count(&held)).expect("the test waits");
    poll_on(
        threads(),
        move |_| {
            let _ = &work;
            Poll::Ready(())
        },
        count,
    );
    assert_eq!(result.recv(), Ok(1));
}

fn is_number(opened: Poll<Result<OpenedTensor>>, number: i32) -> bool {
    match opened {
        Poll::Ready(Ok(OpenedTensor::Whole((tensor, false)))) => tensor.to_scalar() == Ok(number),
        _ => false,
    }
}

#[test]
fn a_remote_tensor_is_requested_once() {
    let (send, requests) = channel::<OnOpened>();
    let mut remote = RemoteTensor::new(move |done| send.send(done).expect("the test waits"));
    assert!(requests.try_recv().is_err(), "nothing is requested yet");
    remote.request();
    remote.request();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(remote.poll_open(&mut cx).is_pending());
    let done = requests.try_recv().expect("a request");
    assert!(requests.try_recv().is_err(), "there is one request");
    done(Ok(OpenedTensor::Whole((Tensor::scalar(7i32), false))));
    assert!(is_number(remote.poll_open(&mut cx), 7));
}

#[test]
fn a_request_that_is_dropped_is_an_error() {
    let mut remote = RemoteTensor::new(drop);
    let Poll::Ready(Err(error)) = remote.poll_open(&mut Context::from_waker(Waker::noop())) else {
        panic!("the request is gone")
    };
    assert_eq!(error.message, "the request for a tensor was dropped");
}

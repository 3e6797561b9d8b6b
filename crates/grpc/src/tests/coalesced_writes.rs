//! Small writes are combined, large ones are written at once, all in order.

use crate::client::coalesced_writes::CoalescedWrites;
use std::io::{IoSlice, Result};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tokio::io::AsyncWrite;

/// Records every write; accepts at most `most` bytes at a time.
struct Writes {
    seen: Vec<Vec<u8>>,
    most: usize,
}

impl AsyncWrite for &mut Writes {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let taken = bytes.len().min(self.most);
        self.seen.push(bytes[..taken].to_vec());
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn small_writes_wait_once_and_are_combined() {
    let mut writes = Writes { seen: Vec::new(), most: usize::MAX };
    let mut writer = pin!(CoalescedWrites::new(&mut writes));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(writer.as_mut().poll_write(&mut cx, b"headers "), Poll::Ready(Ok(8))));
    assert!(writer.as_mut().poll_flush(&mut cx).is_pending());
    let parts = [IoSlice::new(b"and "), IoSlice::new(b"message")];
    assert!(matches!(writer.as_mut().poll_write_vectored(&mut cx, &parts), Poll::Ready(Ok(11))));
    assert!(writer.as_mut().poll_flush(&mut cx).is_ready());
    assert!(writer.as_mut().poll_flush(&mut cx).is_ready(), "nothing is left to wait for");
    assert_eq!(writes.seen, [b"headers and message"]);
}

#[test]
fn a_large_write_follows_the_buffered_bytes() {
    let mut writes = Writes { seen: Vec::new(), most: 3000 };
    let mut writer = pin!(CoalescedWrites::new(&mut writes));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(writer.as_mut().poll_write(&mut cx, &[1; 4000]), Poll::Ready(Ok(4000))));
    assert!(matches!(writer.as_mut().poll_write(&mut cx, &[2; 5000]), Poll::Ready(Ok(3000))));
    assert_eq!(writes.seen, [vec![1; 3000], vec![1; 1000], vec![2; 3000]]);
}

#[test]
fn shutdown_writes_the_buffered_bytes() {
    let mut writes = Writes { seen: Vec::new(), most: usize::MAX };
    let mut writer = pin!(CoalescedWrites::new(&mut writes));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(writer.as_mut().poll_write(&mut cx, b"bye").is_ready());
    assert!(writer.as_mut().poll_shutdown(&mut cx).is_ready());
    assert_eq!(writes.seen, [b"bye"]);
}

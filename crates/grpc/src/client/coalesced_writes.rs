//! Combines small writes to a connection that follow each other into one.
//!
//! HTTP/2 sends the headers of a call before it asks for the message, so each call would be two packets, each of which
//! wakes the other task. Written bytes wait until the async tasks that are ready now have run; by then the message is
//! usually there.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes that wait; more are written at once.
const MAX_BUFFERED: usize = 4096;

/// A connection that combines small writes.
pub(crate) struct CoalescedWrites<T> {
    inner: T,
    buffered: Vec<u8>,
    /// Whether the buffered bytes have waited once.
    waited: bool,
}

impl<T: AsyncWrite + Unpin> CoalescedWrites<T> {
    pub fn new(inner: T) -> CoalescedWrites<T> {
        CoalescedWrites { inner, buffered: Vec::new(), waited: false }
    }

    /// Writes the buffered bytes.
    fn poll_write_buffered(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        while !self.buffered.is_empty() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.buffered))?;
            if written == 0 {
                return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into()));
            }
            self.buffered.drain(..written);
        }
        self.waited = false;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for CoalescedWrites<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, into)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for CoalescedWrites<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if self.buffered.len() + len <= MAX_BUFFERED {
            parts.iter().for_each(|part| self.buffered.extend_from_slice(part));
            return Poll::Ready(Ok(len));
        }
        ready!(self.poll_write_buffered(cx))?;
        Pin::new(&mut self.inner).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if !self.buffered.is_empty() && !self.waited {
            self.waited = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(self.poll_write_buffered(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        ready!(self.poll_write_buffered(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

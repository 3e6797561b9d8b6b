//! Small writes that follow each other at once leave as one.
//!
//! HTTP/2 sends the headers of a call before it asks for the message, so each call would be two packets, and each of them
//! wakes the other task. What is written waits until the tasks that are ready now have run: usually the message is
//! there then.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// As much as may wait; more is written at once.
const HELD: usize = 4096;

/// A connection whose small writes wait for each other.
pub(crate) struct Corked<T> {
    inner: T,
    held: Vec<u8>,
    /// Whether what is held has waited.
    waited: bool,
}

impl<T: AsyncWrite + Unpin> Corked<T> {
    pub fn new(inner: T) -> Corked<T> {
        Corked { inner, held: Vec::new(), waited: false }
    }

    /// Writes what is held.
    fn poll_release(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        while !self.held.is_empty() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.held))?;
            if written == 0 {
                return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into()));
            }
            self.held.drain(..written);
        }
        self.waited = false;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Corked<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, into)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Corked<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if self.held.len() + len <= HELD {
            parts.iter().for_each(|part| self.held.extend_from_slice(part));
            return Poll::Ready(Ok(len));
        }
        ready!(self.poll_release(cx))?;
        Pin::new(&mut self.inner).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if !self.held.is_empty() && !self.waited {
            self.waited = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(self.poll_release(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        ready!(self.poll_release(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

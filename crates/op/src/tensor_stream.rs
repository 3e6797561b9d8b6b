//! Tensors that are read in chunks, from a file or from another task, so that no task holds all of their bytes.
//!
//! The reader pulls: it polls a [`TensorStream`] for the next chunk, and nothing moves before it does, except the few
//! chunks that a source may read ahead. The interface is `std::task::Poll`, so that a kernel can wait for a chunk
//! without holding a thread (see [`poll_on`](crate::poll_on)) and an async transport can await it.

use crate::{Received, Spawn};
use futures_channel::oneshot;
use status::{Result, internal};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tensor::{Bytes, DType, Shape, Tensor};

/// The approximate size of a chunk: large enough that reading it is worth a call, small enough to hold in memory.
pub const CHUNK: usize = 1 << 20;

type NextChunk = dyn FnMut(&mut Context<'_>) -> Poll<Result<Option<Bytes>>> + Send;

/// A tensor of plain elements whose bytes its reader pulls chunk by chunk. Dropping it ends the transfer: the file is
/// closed, or the call to the other task is cancelled.
pub struct TensorStream {
    dtype: DType,
    shape: Shape,
    next: Box<NextChunk>,
}

impl TensorStream {
    /// A tensor whose chunks `next` returns: the bytes in order, then `None`, or an error.
    pub fn new(
        dtype: DType,
        shape: Shape,
        next: impl FnMut(&mut Context<'_>) -> Poll<Result<Option<Bytes>>> + Send + 'static,
    ) -> TensorStream {
        TensorStream { dtype, shape, next: Box::new(next) }
    }

    /// A tensor in a file: each chunk is read by one call of `read`, on a thread that `spawn` provides.
    pub fn from_reads(
        dtype: DType,
        shape: Shape,
        spawn: Spawn,
        read: impl FnMut() -> Result<Option<Bytes>> + Send + 'static,
    ) -> TensorStream {
        let (mut idle, mut reading) = (Some(read), None);
        TensorStream::new(dtype, shape, move |cx| {
            if let Some(mut read) = idle.take() {
                let (answer, wait) = oneshot::channel();
                spawn(Box::new(move || {
                    let chunk = read();
                    let _ = answer.send((read, chunk)); // refused if the stream was dropped meanwhile
                }));
                reading = Some(wait);
            }
            let Some(wait) = &mut reading else { return Poll::Ready(Err(reader_lost())) };
            let answer = ready!(Pin::new(wait).poll(cx));
            reading = None;
            Poll::Ready(answer.map_err(|_| reader_lost()).and_then(|(read, chunk)| {
                idle = Some(read);
                chunk
            }))
        })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Polls for the next chunk; `None` follows the last one. It must not be polled again after that, nor after an
    /// error.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>>> {
        (self.next)(cx)
    }
}

impl fmt::Debug for TensorStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorStream<type: {} shape: {}>", self.dtype, self.shape)
    }
}

fn reader_lost() -> status::Error {
    internal!("the thread that read a stored tensor stopped")
}

/// A tensor that was requested to be read in chunks.
#[derive(Debug)]
pub enum OpenedTensor {
    /// All of it, because it is small, is in this process, or has elements that cannot be split; and whether it is
    /// dead.
    Whole(Received),
    /// A tensor of plain elements whose bytes follow.
    Stream(TensorStream),
}

/// Called once, with the tensor that was requested.
pub type OnOpened = Box<dyn FnOnce(Result<OpenedTensor>) + Send>;

/// An input that stays with another task until its reader opens it.
pub struct RemoteTensor(Request);

enum Request {
    Unsent(Box<dyn FnOnce(OnOpened) + Send>),
    Sent(oneshot::Receiver<Result<OpenedTensor>>),
}

impl RemoteTensor {
    /// An input that is requested by calling `open`.
    pub fn new(open: impl FnOnce(OnOpened) + Send + 'static) -> RemoteTensor {
        RemoteTensor(Request::Unsent(Box::new(open)))
    }

    /// Requests the tensor if this has not happened yet, without waiting for the answer.
    pub fn request(&mut self) {
        if let Request::Unsent(_) = self.0 {
            let (answer, wait) = oneshot::channel();
            if let Request::Unsent(open) = std::mem::replace(&mut self.0, Request::Sent(wait)) {
                open(Box::new(move |opened| drop(answer.send(opened)))); // refused if the reader is gone
            }
        }
    }

    /// Requests the tensor if this has not happened yet, and polls for the answer. It must not be polled again after
    /// the answer.
    pub fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<Result<OpenedTensor>> {
        self.request();
        let Request::Sent(wait) = &mut self.0 else { return Poll::Pending };
        let opened = ready!(Pin::new(wait).poll(cx));
        Poll::Ready(opened.unwrap_or_else(|_| Err(internal!("the request for a tensor was dropped"))))
    }
}

/// A tensor in a file.
pub trait Stored: Send + Sync {
    /// The element type.
    fn dtype(&self) -> DType;
    /// The shape.
    fn shape(&self) -> &Shape;
    /// Reads all of it.
    fn read(&self) -> Result<Tensor>;
    /// Opens it to be read in chunks, on threads that `spawn` provides; `None` if it can only be read whole.
    fn stream(&self, spawn: Spawn) -> Option<TensorStream>;
}

impl fmt::Debug for dyn Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stored<type: {} shape: {}>", self.dtype(), self.shape())
    }
}

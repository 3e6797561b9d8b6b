//! Tensors that nobody holds whole: their bytes are read piece by piece, from another task or from a file.

use status::{Result, internal};
use std::fmt;
use std::sync::Arc;
use tensor::{Bytes, DType, Shape, Tensor};

/// How long a piece is about: large enough that reading it is worth a call, small enough to be held.
pub const PIECE: usize = 1 << 20;

/// Called with what was asked for; nothing if it is dead.
pub type Opening = Box<dyn FnOnce(Result<Option<Opened>>) + Send>;

/// A tensor that was asked for and is there.
pub enum Opened {
    /// All of it: it is small, or near, or has no plain elements.
    Whole(Tensor),
    /// Plain elements, whose bytes follow.
    Pieces(DType, Shape, Arc<dyn Pieces>),
}

/// The bytes of a tensor on its way here. Dropping it tells the sender to stop.
pub trait Pieces: Send + Sync {
    /// Calls `done` with the next bytes, none after the last; asked again only when it was called. The reader may take
    /// its time: meanwhile no more than a few pieces are under way.
    fn next(&self, done: Box<dyn FnOnce(Result<Option<Bytes>>) + Send>);
}

/// An input that is with another task until its reader opens it.
pub struct Far(Box<dyn FnOnce(Opening) + Send>);

impl Far {
    /// An input that is opened by calling `open`.
    pub fn new(open: impl FnOnce(Opening) + Send + 'static) -> Far {
        Far(Box::new(open))
    }

    /// Asks for it; calls `done` when it is there.
    pub fn open(self, done: Opening) {
        (self.0)(done);
    }
}

/// A tensor in a file.
pub trait Stored: Send + Sync {
    /// Its element type.
    fn dtype(&self) -> DType;
    /// Its shape.
    fn shape(&self) -> &Shape;
    /// All of it.
    fn read(&self) -> Result<Tensor>;
    /// Its bytes from the beginning; none if it can only be read whole.
    fn pieces(&self) -> Option<StoredPieces>;
}

/// Gives the next bytes of a stored tensor, none after the last.
pub type StoredPieces = Box<dyn FnMut() -> Result<Option<Bytes>> + Send>;

impl fmt::Debug for dyn Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stored<type: {} shape: {}>", self.dtype(), self.shape())
    }
}

/// How many bytes plain elements of a shape take.
pub fn plain_size(dtype: DType, shape: &Shape) -> Result<usize> {
    let size = shape.checked_elements()?.checked_mul(dtype.size());
    size.ok_or_else(|| internal!("a tensor of type {dtype} and shape {shape} has too many bytes"))
}

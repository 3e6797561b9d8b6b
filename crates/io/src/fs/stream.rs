//! Adapters from files to the stream traits of the standard library, for its decoders and encoders.

use super::{RandomAccessFile, WritableFile};
use status::{Code, Error, Result};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// Reads a file sequentially.
pub struct FileStream {
    file: Arc<dyn RandomAccessFile>,
    offset: u64,
}

impl FileStream {
    /// Reads from `offset` on.
    pub fn new(file: Arc<dyn RandomAccessFile>, offset: u64) -> FileStream {
        FileStream { file, offset }
    }
}

impl Read for FileStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.offset, buffer).map_err(carrying)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// Writes a file.
pub(crate) struct FileSink(pub Box<dyn WritableFile>);

impl Write for FileSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes).map_err(carrying)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(carrying)
    }
}

/// Wraps an error of this crate for the standard library.
pub(crate) fn carrying(error: Error) -> io::Error {
    io::Error::other(error)
}

/// Unwraps an error of this crate, or converts another error of the standard library.
pub(crate) fn carried<T>(result: io::Result<T>) -> Result<T> {
    result.map_err(|error| match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(ours) => ours.clone(),
        None => Error::new(Code::DataLoss, error.to_string()),
    })
}

//! Files as the streams of the standard library, so that its decoders and encoders can be put on them.

use super::{RandomAccessFile, WritableFile};
use status::{Code, Error, Result};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// Reads a file from an offset on.
pub struct FileStream {
    file: Arc<dyn RandomAccessFile>,
    offset: u64,
}

impl FileStream {
    /// The bytes of a file from `offset` on.
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

/// Our error on its way through the standard library.
pub(crate) fn carrying(error: Error) -> io::Error {
    io::Error::other(error)
}

/// Our error, if the standard library brought one; else its own words.
pub(crate) fn carried<T>(result: io::Result<T>) -> Result<T> {
    result.map_err(|error| match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(ours) => ours.clone(),
        None => Error::new(Code::DataLoss, error.to_string()),
    })
}

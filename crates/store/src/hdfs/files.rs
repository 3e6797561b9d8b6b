//! Open files of HDFS.

use super::Calls;
use bytes::Bytes;
use hdfs_native::file::{FileReader, FileWriter};
use io::fs::{RandomAccessFile, WritableFile};
use status::{Result, failed_precondition};
use std::sync::Arc;

/// Large reads are split into requests of this size.
const PIECE: usize = 8 << 20;
/// Writes are buffered up to this size.
const BUFFER: usize = 1 << 20;

pub(super) struct HdfsReader {
    name: String,
    file: Arc<FileReader>,
    calls: Arc<Calls>,
}

impl HdfsReader {
    pub fn new(name: &str, file: FileReader, calls: Arc<Calls>) -> HdfsReader {
        HdfsReader { name: name.to_string(), file: Arc::new(file), calls }
    }
}

impl RandomAccessFile for HdfsReader {
    fn size(&self) -> Result<u64> {
        Ok(self.file.file_length() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let length = self.file.file_length();
        let begin = usize::try_from(offset).unwrap_or(usize::MAX).min(length);
        let count = buffer.len().min(length - begin);
        let mut at = begin;
        for piece in buffer[..count].chunks_mut(PIECE) {
            let (file, wanted) = (self.file.clone(), piece.len());
            let bytes = self.calls.wait(&self.name, async move { file.read_range(at, wanted).await })?;
            let found = bytes.len().min(wanted);
            piece[..found].copy_from_slice(&bytes[..found]);
            at += found;
            if found < wanted {
                break;
            }
        }
        Ok(at - begin)
    }
}

/// A file that is being written. It exists at once and grows.
pub(super) struct HdfsWriter {
    name: String,
    /// `None` after an error.
    file: Option<FileWriter>,
    buffer: Vec<u8>,
    calls: Arc<Calls>,
}

impl HdfsWriter {
    pub fn new(name: &str, file: FileWriter, calls: Arc<Calls>) -> HdfsWriter {
        HdfsWriter { name: name.to_string(), file: Some(file), buffer: Vec::new(), calls }
    }

    /// Writes the buffer, and makes it visible to other readers if `visible`.
    fn send(&mut self, visible: bool) -> Result<()> {
        let Some(mut file) = self.file.take() else {
            return Err(failed_precondition!("{}; an earlier write to this file failed", self.name));
        };
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        let file = self.calls.wait(&self.name, async move {
            if !bytes.is_empty() {
                file.write_bytes(bytes).await?;
            }
            if visible {
                file.hsync().await?;
            }
            Ok(file)
        })?;
        self.file = Some(file);
        Ok(())
    }
}

impl WritableFile for HdfsWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER { self.send(false) } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.send(true)
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.send(false)?;
        match self.file.take() {
            Some(mut file) => self.calls.wait(&self.name, async move { file.close().await }),
            None => Ok(()),
        }
    }
}

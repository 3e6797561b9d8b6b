//! Record files: lengths, bytes and checksums, one record after the other.

use crate::crc;
use crate::file::{data_loss, failed};
use bytes::Bytes;
use status::Result;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Reads the records of a file in order.
pub struct RecordReader<R = BufReader<File>> {
    source: R,
    path: PathBuf,
    offset: u64,
}

/// Records are read in pieces of this size, so that a length that lies costs no memory.
const PIECE: u64 = 1 << 20;

impl RecordReader {
    /// The records of the file at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<RecordReader> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| failed(path, &error))?;
        Ok(RecordReader { source: BufReader::new(file), path: path.to_path_buf(), offset: 0 })
    }
}

impl<R: Read> RecordReader<R> {
    /// The records in these bytes; `name` stands in errors.
    pub fn new(source: R, name: impl Into<PathBuf>) -> RecordReader<R> {
        RecordReader { source, path: name.into(), offset: 0 }
    }

    /// The next record; none at the end.
    fn read(&mut self) -> Result<Option<Bytes>> {
        let mut head = [0u8; 12];
        match self.fill(&mut head)? {
            0 => return Ok(None),
            12 => {}
            _ => return Err(self.truncated()),
        }
        let (length, check) = head.split_at(8);
        if crc::masked(length) != number(check) {
            return Err(data_loss(format!("corrupted record at {}", self.offset)));
        }
        let length = u64::from_le_bytes(length.try_into().expect("8 bytes"));
        let data = self.bytes(length)?;
        let mut check = [0u8; 4];
        if self.fill(&mut check)? != 4 {
            return Err(self.truncated());
        }
        if crc::masked(&data) != number(&check) {
            return Err(data_loss(format!("corrupted record at {}", self.offset)));
        }
        self.offset += length + 16;
        Ok(Some(data.into()))
    }

    fn bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        while (data.len() as u64) < length {
            let begin = data.len();
            data.resize(begin + PIECE.min(length - begin as u64) as usize, 0);
            if self.fill(&mut data[begin..])? != data.len() - begin {
                return Err(self.truncated());
            }
        }
        Ok(data)
    }

    /// Reads as much as there is.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut count = 0;
        while count < buffer.len() {
            match self.source.read(&mut buffer[count..]) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&self.path, &error)),
            }
        }
        Ok(count)
    }

    fn truncated(&self) -> status::Error {
        data_loss(format!("truncated record at {}", self.offset))
    }
}

impl<R: Read> Iterator for RecordReader<R> {
    type Item = Result<Bytes>;

    fn next(&mut self) -> Option<Result<Bytes>> {
        self.read().transpose()
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("4 bytes"))
}

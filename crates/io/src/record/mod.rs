//! Record files: lengths, bytes and checksums, one record after the other, as they are or compressed.

mod reader;
mod writer;

pub use reader::RecordReader;
pub use writer::RecordWriter;

use status::{Result, invalid};

/// How the records of a file are compressed, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// As zlib has it.
    Zlib,
    /// As gzip has it.
    Gzip,
}

impl Compression {
    /// The compression TensorFlow calls so: nothing, `ZLIB` or `GZIP`.
    pub fn from_name(name: &str) -> Result<Compression> {
        match name {
            "" => Ok(Compression::None),
            "ZLIB" => Ok(Compression::Zlib),
            "GZIP" => Ok(Compression::Gzip),
            _ => Err(invalid!("Unsupported compression_type: {name}")),
        }
    }
}

/// Bytes before a record: its length, and a checksum of that.
const HEADER: usize = 12;

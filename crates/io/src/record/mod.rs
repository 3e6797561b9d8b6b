//! Record files: lengths, bytes and checksums, one record after the other, as they are or compressed.

mod reader;
mod snappy;
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
    /// Packed by snappy, in blocks behind their lengths.
    Snappy,
}

impl Compression {
    /// The compression TensorFlow calls so: nothing, `ZLIB`, `GZIP` or `SNAPPY`.
    pub fn from_name(name: &str) -> Result<Compression> {
        match name {
            "" => Ok(Compression::None),
            "ZLIB" => Ok(Compression::Zlib),
            "GZIP" => Ok(Compression::Gzip),
            "SNAPPY" => Ok(Compression::Snappy),
            _ => Err(invalid!("Unsupported compression_type: {name}")),
        }
    }
}

/// Bytes before a record: its length, and a checksum of that.
const HEADER: usize = 12;

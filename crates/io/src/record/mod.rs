//! Record files (TFRecord): lengths, bytes and checksums of consecutive records, with optional compression.

mod reader;
mod sink;
mod snappy;
mod writer;

pub use reader::RecordReader;
pub(crate) use reader::{decoder, decoder_of};
pub(crate) use sink::CompressedSink;
pub use writer::RecordWriter;

use status::{Result, invalid};

/// The compression of a whole record file.
///
/// # Examples
///
/// ```
/// use flowgrid_io::Compression;
///
/// assert_eq!(Compression::from_name("GZIP")?, Compression::Gzip);
/// assert_eq!(Compression::default(), Compression::None);
/// # Ok::<(), status::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// zlib format.
    Zlib,
    /// gzip format.
    Gzip,
    /// Blocks compressed by snappy, each after its length.
    Snappy,
}

impl Compression {
    /// The compression with TensorFlow's name: empty, `ZLIB`, `GZIP` or `SNAPPY`.
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

/// The size of the header of a record: its length and the checksum of the length.
const HEADER: usize = 12;

/// True if these bytes begin with the header of a record, whose checksum is correct.
pub(crate) fn is_record(bytes: &[u8]) -> bool {
    bytes.split_at_checked(8).is_some_and(|(length, rest)| rest.starts_with(&crate::crc::masked(length).to_le_bytes()))
}

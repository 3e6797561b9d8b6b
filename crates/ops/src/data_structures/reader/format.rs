//! The formats of readers: whole files, lines, records.

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use io::{Compression, FileSystems, RecordReader};
use op::Setup;
use status::{Code, Error, Result, invalid, out_of_range};
use std::io::Read;
use tensor::Bytes;

/// How a reader splits a file into records.
pub(crate) enum Format {
    /// The name is the record.
    Identity,
    /// The file is the record.
    Whole,
    /// Lines, without the first few.
    Lines { skip: usize },
    /// Pieces of one length, `hop` bytes apart.
    Fixed { header: usize, record: usize, footer: usize, hop: usize, compression: Compression },
    /// TensorFlow's own record files.
    Records { compression: Compression },
}

/// A file that is being read.
pub(crate) enum Opened {
    One(Option<Bytes>),
    Lines { contents: Bytes, position: usize, number: usize },
    Fixed { contents: Bytes, position: usize, number: usize, record: usize, footer: usize, hop: usize },
    Records(RecordReader),
}

impl Format {
    /// Reads the attributes of a node.
    pub fn of(setup: &Setup<'_>) -> Result<Format> {
        let size = |name: &str| {
            let value = setup.int(name)?;
            usize::try_from(value).map_err(|_| invalid!("{name} must be >= 0 not {value}"))
        };
        match setup.def().op.trim_end_matches("V2") {
            "WholeFileReader" => Ok(Format::Whole),
            "TextLineReader" => Ok(Format::Lines { skip: size("skip_header_lines")? }),
            "FixedLengthRecordReader" => {
                let (header, record) = (size("header_bytes")?, size("record_bytes")?);
                let (footer, hop) = (size("footer_bytes")?, size("hop_bytes")?);
                let encoding = if setup.find("encoding").is_some() { setup.string("encoding")? } else { String::new() };
                // Unknown names mean no compression, as in TensorFlow.
                let known = Compression::from_name(&encoding).ok().filter(|&known| known != Compression::Snappy);
                let compression = known.unwrap_or_default();
                Ok(Format::Fixed { header, record, footer, hop: if hop == 0 { record } else { hop }, compression })
            }
            "TFRecordReader" => {
                let compression = setup.string("compression_type")?;
                Ok(Format::Records { compression: Compression::from_name(&compression).unwrap_or_default() })
            }
            _ => Ok(Format::Identity),
        }
    }

    /// Whether a file is one record.
    pub fn is_whole(&self) -> bool {
        matches!(self, Format::Identity | Format::Whole)
    }

    /// True if work on a file begins before the file is opened, so that opening is retried until it succeeds.
    pub fn is_begun_unread(&self) -> bool {
        matches!(self, Format::Whole)
    }

    /// Opens the file of this name, at a position that `Opened::place` returned.
    pub fn open(&self, systems: &FileSystems, name: &[u8], place: u64) -> Result<Opened> {
        let file = String::from_utf8_lossy(name);
        Ok(match *self {
            Format::Identity => Opened::One(Some(Bytes::copy_from_slice(name))),
            Format::Whole => Opened::One(Some(systems.read(&file)?)),
            Format::Lines { skip } => {
                let mut lines = Opened::Lines { contents: systems.read(&file)?, position: 0, number: 0 };
                for _ in 0..skip {
                    if lines.next(&Bytes::new())?.is_none() {
                        break;
                    }
                }
                lines
            }
            Format::Fixed { header, record, footer, hop, compression } => {
                let contents = inflated(systems.read(&file)?, compression)?;
                if header > contents.len() {
                    return Err(out_of_range!("reached end of file"));
                }
                Opened::Fixed { contents, position: header, number: 0, record, footer, hop }
            }
            Format::Records { compression } => {
                Opened::Records(RecordReader::open_at(systems, &file, compression, place)?)
            }
        })
    }
}

impl Opened {
    /// Whether the file is one record: then it ends with it.
    pub fn is_whole(&self) -> bool {
        matches!(self, Opened::One(_))
    }

    /// The position of the next record, for formats that can open a file in the middle.
    pub fn place(&self) -> u64 {
        match self {
            Opened::Records(records) => records.offset(),
            _ => 0,
        }
    }

    /// The next record and its key; none at the end.
    pub fn next(&mut self, file: &Bytes) -> Result<Option<(Bytes, Bytes)>> {
        let key = |number: u64| Bytes::from([&file[..], format!(":{number}").as_bytes()].concat());
        Ok(match self {
            Opened::One(record) => record.take().map(|record| (file.clone(), record)),
            Opened::Lines { contents, position, number } => {
                let Some(line) = next_line(contents, position) else { return Ok(None) };
                *number += 1;
                Some((key(*number as u64), line))
            }
            Opened::Fixed { contents, position, number, record, footer, hop } => {
                let end = position.checked_add(*record).and_then(|end| end.checked_add(*footer));
                if end.is_none_or(|end| end > contents.len()) || *hop == 0 {
                    return Ok(None);
                }
                let value = contents.slice(*position..*position + *record);
                *position = position.saturating_add(*hop);
                *number += 1;
                Some((key(*number as u64 - 1), value))
            }
            Opened::Records(records) => {
                let begin = records.offset();
                records.read()?.map(|record| (key(begin), record))
            }
        })
    }
}

/// The decompressed contents of a file.
fn inflated(contents: Bytes, compression: Compression) -> Result<Bytes> {
    let mut bytes = Vec::new();
    let read = match compression {
        Compression::None | Compression::Snappy => return Ok(contents),
        Compression::Zlib => ZlibDecoder::new(&contents[..]).read_to_end(&mut bytes),
        Compression::Gzip => MultiGzDecoder::new(&contents[..]).read_to_end(&mut bytes),
    };
    match read {
        Ok(_) => Ok(bytes.into()),
        Err(error) => Err(Error::new(Code::DataLoss, format!("inflate() failed with error -3: {error}"))),
    }
}

/// The next line, without carriage returns; none at the end.
fn next_line(contents: &Bytes, position: &mut usize) -> Option<Bytes> {
    let rest = contents.get(*position..).filter(|rest| !rest.is_empty())?;
    let length = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    let line = contents.slice(*position..*position + length);
    *position += (length + 1).min(rest.len());
    match line.contains(&b'\r') {
        true => Some(line.iter().copied().filter(|&byte| byte != b'\r').collect()),
        false => Some(line),
    }
}

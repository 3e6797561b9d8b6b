//! What readers make of a file: itself, its lines, its records.

use super::files;
use io::RecordReader;
use op::Setup;
use status::{Result, invalid, out_of_range, unimplemented_op};
use tensor::Bytes;

/// What a reader makes of a file.
pub(crate) enum Format {
    /// The name is the record.
    Identity,
    /// The file is the record.
    Whole,
    /// Lines, without the first few.
    Lines { skip: usize },
    /// Pieces of one length, `hop` bytes apart.
    Fixed { header: usize, record: usize, footer: usize, hop: usize },
    /// TensorFlow's own record files.
    Records,
}

/// A file that is being read.
pub(crate) enum Opened {
    One(Option<Bytes>),
    Lines { contents: Bytes, position: usize, number: usize },
    Fixed { contents: Bytes, position: usize, number: usize, record: usize, footer: usize, hop: usize },
    Records { records: RecordReader<std::io::Cursor<Vec<u8>>>, offset: u64 },
}

impl Format {
    /// What the op and the attributes of a node say.
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
                if let Some(encoding) = setup.find("encoding").and_then(|_| setup.string("encoding").ok()) {
                    uncompressed(&encoding)?;
                }
                Ok(Format::Fixed { header, record, footer, hop: if hop == 0 { record } else { hop } })
            }
            "TFRecordReader" => {
                uncompressed(&setup.string("compression_type")?)?;
                Ok(Format::Records)
            }
            _ => Ok(Format::Identity),
        }
    }

    /// Whether a file is one record.
    pub fn is_whole(&self) -> bool {
        matches!(self, Format::Identity | Format::Whole)
    }

    /// Opens the file of this name.
    pub fn open(&self, name: &[u8]) -> Result<Opened> {
        if let Format::Identity = self {
            return Ok(Opened::One(Some(Bytes::copy_from_slice(name))));
        }
        let contents = files::read(&String::from_utf8_lossy(name))?;
        Ok(match *self {
            Format::Identity | Format::Whole => Opened::One(Some(contents.into())),
            Format::Lines { skip } => {
                let mut lines = Opened::Lines { contents: contents.into(), position: 0, number: 0 };
                for _ in 0..skip {
                    if lines.next(&Bytes::new())?.is_none() {
                        break;
                    }
                }
                lines
            }
            Format::Fixed { header, record, footer, hop } => {
                if header > contents.len() {
                    return Err(out_of_range!("reached end of file"));
                }
                Opened::Fixed { contents: contents.into(), position: header, number: 0, record, footer, hop }
            }
            Format::Records => {
                Opened::Records { records: RecordReader::new(std::io::Cursor::new(contents)), offset: 0 }
            }
        })
    }
}

fn uncompressed(encoding: &str) -> Result<()> {
    match encoding {
        "" | "NONE" => Ok(()),
        other => Err(unimplemented_op!("Compression {other} of record files is not supported")),
    }
}

impl Opened {
    /// Whether the file is one record: then it ends with it.
    pub fn is_whole(&self) -> bool {
        matches!(self, Opened::One(_))
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
            Opened::Records { records, offset } => {
                let Some(record) = records.next().transpose()? else { return Ok(None) };
                let key = key(*offset);
                *offset += record.len() as u64 + 16;
                Some((key, record))
            }
        })
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

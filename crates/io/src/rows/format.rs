//! The format and compression of a file, from its name and from its first bytes.

use crate::Compression;
use crate::fs::path::basename;
use crate::fs::{FileStream, FileSystems, carried};
use crate::record::{decoder, is_record};
use status::{Error, Result, invalid};
use std::io::{Cursor, Read};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TFRecord files of Example messages.
    TfRecord,
    /// Comma-separated values, with the names of the columns in the first line.
    Csv,
    /// A JSON object on each line.
    JsonLines,
    /// Parquet.
    Parquet,
}

/// The number of bytes that are read to detect a format.
const HEAD: usize = 4096;

impl Format {
    /// The format with this name.
    pub fn from_name(name: &str) -> Result<Format> {
        match name {
            "tfrecord" | "tfrecords" | "record" => Ok(Format::TfRecord),
            "csv" => Ok(Format::Csv),
            "jsonl" | "json" | "ndjson" => Ok(Format::JsonLines),
            "parquet" => Ok(Format::Parquet),
            _ => Err(invalid!("unknown format '{name}'; expected tfrecord, csv, jsonl or parquet")),
        }
    }

    /// The format and compression that the name of a file suggests: `train.csv.gz`, or the shards
    /// `train.tfrecord.gz-00000-of-00010` and `train.tfrecord-00000-of-00010.gz`.
    pub fn of_file(path: &str) -> Result<(Format, Compression)> {
        let (name, last) = without_compression(basename(path));
        let (name, first) = without_compression(without_shard(name));
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let format = Format::from_name(extension).map_err(|_| {
            invalid!("the name of {path} does not say its format; expected .tfrecord, .csv, .jsonl or .parquet")
        })?;
        Ok((format, if last == Compression::None { first } else { last }))
    }

    /// What the first bytes of a file say: the compression, and the format if they are typical for one.
    pub fn of_content(systems: &FileSystems, path: &str) -> Result<(Option<Format>, Compression)> {
        let head = carried(head(FileStream::new(systems.open(path)?, 0)))?;
        let compression = compression(&head);
        let content = match compression {
            Compression::None => Some(head),
            _ => inflated(&head, compression),
        };
        Ok((content.and_then(|content| format(&content)), compression))
    }

    /// The format and compression of an existing file, by its name if that says the format.
    pub(super) fn of_existing(systems: &FileSystems, path: &str) -> Result<(Format, Compression)> {
        let (found, compression) = Format::of_content(systems, path)?;
        match (Format::of_file(path), found) {
            (Ok((format, Compression::None)), _) => Ok((format, compression)),
            (Ok(named), _) => Ok(named),
            (Err(_), Some(found)) => Ok((found, compression)),
            (Err(_), None) => Err(unknown(path)),
        }
    }
}

fn unknown(path: &str) -> Error {
    invalid!(
        "neither the name nor the first bytes of {path} say its format; expected .tfrecord, .csv, .jsonl or .parquet"
    )
}

fn without_compression(name: &str) -> (&str, Compression) {
    match name.rsplit_once('.') {
        Some((rest, "gz" | "gzip")) => (rest, Compression::Gzip),
        Some((rest, "zz" | "zlib")) => (rest, Compression::Zlib),
        _ => (name, Compression::None),
    }
}

/// The name without `-00000-of-00010`.
fn without_shard(name: &str) -> &str {
    let is_number = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = name.rsplit_once("-of-").filter(|(_, count)| is_number(count));
    let parts = parts.and_then(|(rest, _)| rest.rsplit_once('-')).filter(|(_, shard)| is_number(shard));
    parts.map_or(name, |(rest, _)| rest)
}

fn head(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    source.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// The beginning of what these bytes contain; none if they are not compressed.
fn inflated(bytes: &[u8], compression: Compression) -> Option<Vec<u8>> {
    head(decoder(Cursor::new(bytes.to_vec()), compression, HEAD)).ok()
}

fn compression(head: &[u8]) -> Compression {
    match head {
        head if is_record(head) => Compression::None,
        [0x1f, 0x8b, 8, ..] => Compression::Gzip,
        // A text may begin with the two bytes of a zlib header.
        [0x78, ..] if !is_text(head) && inflated(head, Compression::Zlib).is_some() => Compression::Zlib,
        _ => Compression::None,
    }
}

fn format(head: &[u8]) -> Option<Format> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    match text.trim_ascii_start() {
        // A TFRecord file without records is empty.
        _ if head.is_empty() || is_record(head) => Some(Format::TfRecord),
        _ if head.starts_with(b"PAR1") => Some(Format::Parquet),
        [b'{', ..] => Some(Format::JsonLines),
        text if is_text(text) && text.split(|&byte| byte == b'\n').next()?.contains(&b',') => Some(Format::Csv),
        _ => None,
    }
}

/// True if this is the beginning of a text in UTF-8.
fn is_text(head: &[u8]) -> bool {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The last character may be cut.
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or("\0"),
        Err(_) => return false,
    };
    text.chars().all(|c| !c.is_control() || matches!(c, '\t' | '\r' | '\n'))
}

//! Sources that read the records of several files, one file after the other.

use crate::attrs::{scalar, string_scalar};
use crate::{Cardinality, Dataset, Element, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter};
use io::{Compression, FileSystems};
use op::Inputs;
use smallvec::smallvec;
use status::{Code, Error, Result, invalid};
use std::sync::Arc;
use std::task::Poll;
use tensor::{Bytes, DType, PartialShape, Tensor};

/// How the records of a file are found.
pub(crate) trait Format: Send + Sync + 'static {
    /// An open file.
    type Reader: Records;
    /// The key of the position in saved states.
    const POSITION: &'static str = "";
    /// The position that is saved while no file is open, if any is.
    const NO_POSITION: Option<i64> = None;
    /// True if an error ends the file, so that the next request reads the next file.
    const ENDS_AFTER_ERROR: bool = false;

    /// Opens a file at its first record, or at a position that `Records::position` returned.
    fn open(&self, systems: &FileSystems, file: &FileName<'_>, position: Option<u64>) -> Result<Self::Reader>;

    /// Writes the number of the current file, and the position in it if it is open.
    fn save(&self, writer: &mut StateWriter, prefix: &str, index: usize, position: Option<u64>) {
        writer.int(prefix, "current_file_index", index as i64);
        if let Some(position) = position.map(|position| position as i64).or(Self::NO_POSITION) {
            writer.int(prefix, Self::POSITION, position);
        }
    }

    /// What `save` wrote.
    fn restore(&self, reader: &StateReader, prefix: &str) -> Result<(usize, Option<u64>)> {
        let position = if reader.contains(prefix, Self::POSITION) { reader.int(prefix, Self::POSITION)? } else { -1 };
        Ok((reader.count(prefix, "current_file_index")?, u64::try_from(position).ok()))
    }
}

/// A file and its number among the files.
pub(crate) struct FileName<'a> {
    /// The name.
    pub name: &'a str,
    /// The number.
    pub index: usize,
}

/// The records of an open file.
pub(crate) trait Records: Send {
    /// The next record; none at the end.
    fn next(&mut self) -> Result<Option<Element>>;

    /// The position of the next record.
    fn position(&self) -> u64;
}

/// A dataset of the records of files.
pub(crate) struct Files<F> {
    kind: &'static str,
    names: Vec<String>,
    format: F,
    systems: Arc<FileSystems>,
    spec: Spec,
}

impl<F> Files<F> {
    /// The records of the named files.
    pub(crate) fn new(kind: &'static str, names: Vec<String>, format: F, systems: Arc<FileSystems>) -> Files<F> {
        Files::with_spec(kind, names, format, systems, one_string())
    }

    /// As `new`, for records that are not single strings.
    pub(crate) fn with_spec(
        kind: &'static str,
        names: Vec<String>,
        format: F,
        systems: Arc<FileSystems>,
        spec: Spec,
    ) -> Files<F> {
        Files { kind, names, format, systems, spec }
    }
}

/// A record of bytes as an element.
pub(crate) fn string_element(record: Bytes) -> Element {
    smallvec![Tensor::string(record)]
}

/// Elements of one string.
pub(crate) fn one_string() -> Spec {
    Spec { types: vec![DType::STRING], shapes: vec![PartialShape::scalar()] }
}

/// The names in input `index`, which is called `name` in errors.
pub(crate) fn file_names(inputs: &Inputs, index: usize, name: &str) -> Result<Vec<String>> {
    let names = inputs.look(index)?;
    if names.shape().rank() > 1 {
        return Err(invalid!("`{name}` must be a scalar or a vector."));
    }
    Ok(names.strings()?.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// The compression of text and fixed-length files in input `index`.
pub(crate) fn compression(inputs: &mut Inputs, index: usize) -> Result<Compression> {
    let name = string_scalar(inputs, index, "compression_type")?;
    compression_of(&name).ok_or_else(|| invalid!("Unsupported compression_type."))
}

/// The compression of files that cannot be compressed by snappy.
pub(crate) fn compression_of(name: &str) -> Option<Compression> {
    Compression::from_name(name).ok().filter(|&compression| compression != Compression::Snappy)
}

/// The size of read buffers in input `index`; `rule` is what an error says about it.
pub(crate) fn buffer_size(inputs: &mut Inputs, index: usize, rule: &str) -> Result<usize> {
    let size: i64 = scalar(inputs, index, "buffer_size")?;
    usize::try_from(size).map_err(|_| invalid!("`buffer_size` must be >= 0{rule}"))
}

impl<F: Format> Dataset for Files<F> {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(FilesIterator { dataset: self, index: 0, reader: None, prefix: place.prefix.clone() }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

struct FilesIterator<F: Format> {
    dataset: Arc<Files<F>>,
    /// The number of the current file.
    index: usize,
    reader: Option<F::Reader>,
    prefix: Arc<str>,
}

impl<F: Format> FilesIterator<F> {
    fn next(&mut self) -> Result<Option<Element>> {
        loop {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                None if self.index == self.dataset.names.len() => return Ok(None),
                None => self.reader.insert(self.dataset.open(self.index, None)?),
            };
            let position = reader.position();
            match reader.next() {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => self.end_file(),
                Err(error) => return Err(self.failed(error, position)),
            }
        }
    }

    fn end_file(&mut self) {
        self.reader = None;
        self.index += 1;
    }

    fn failed(&mut self, error: Error, position: u64) -> Error {
        let error = in_file(error, &self.dataset.names[self.index], position);
        if F::ENDS_AFTER_ERROR {
            self.end_file();
        }
        error
    }
}

/// Adds the place of corrupt data to its error.
pub(crate) fn in_file(error: Error, name: &str, position: u64) -> Error {
    match error.code {
        Code::DataLoss => Error { message: format!("{} (file {name}, offset {position})", error.message), ..error },
        _ => error,
    }
}

impl<F: Format> Files<F> {
    fn open(&self, index: usize, position: Option<u64>) -> Result<F::Reader> {
        let name = self
            .names
            .get(index)
            .ok_or_else(|| invalid!("current_file_index_:{index} >= filenames_.size():{}", self.names.len()))?;
        let opened = self.format.open(&self.systems, &FileName { name, index }, position);
        opened.map_err(|error| in_file(error, name, position.unwrap_or(0)))
    }
}

impl<F: Format> Iterate for FilesIterator<F> {
    fn poll_next(&mut self, _: &mut PollContext<'_>) -> Next {
        Poll::Ready(self.next())
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let position = self.reader.as_ref().map(Records::position);
        self.dataset.format.save(writer, &self.prefix, self.index, position);
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let (index, position) = self.dataset.format.restore(reader, &self.prefix)?;
        self.index = index.min(self.dataset.names.len());
        self.reader = position.map(|position| self.dataset.open(self.index, Some(position))).transpose()?;
        Ok(())
    }
}

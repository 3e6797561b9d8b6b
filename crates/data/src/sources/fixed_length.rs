//! FixedLengthRecordDataset and FixedLengthRecordDatasetV2: the pieces of files, all of one length.

use super::files::{FileName, Files, Format, Records, buffer_size, compression, file_names, string_element};
use crate::Element;
use crate::attrs::{DATASET, dataset_kernel, scalar};
use io::{Compression, FileSystems, InputStream};
use op::shapes;
use op::{Grad, Inputs, Kernel, Op, Setup};
use ops::checkpoint::systems;
use status::{Code, Error, Result, invalid, out_of_range};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "FixedLengthRecordDataset(filenames: string, header_bytes: int64, record_bytes: int64, \
              footer_bytes: int64, buffer_size: int64) -> handle: variant; metadata: string = \"\"; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "FixedLengthRecordDatasetV2(filenames: string, header_bytes: int64, record_bytes: int64, \
              footer_bytes: int64, buffer_size: int64, compression_type: string) -> handle: variant; \
              metadata: string = \"\"; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (systems, has_compression) = (systems(setup)?, setup.input_types().len() > 5);
    dataset_kernel(setup, move |_, inputs| {
        let names = file_names(inputs, 0, "filenames")?;
        let layout = Layout {
            header: size(inputs, 1, "header_bytes", 0)?,
            record: size(inputs, 2, "record_bytes", 1)?,
            footer: size(inputs, 3, "footer_bytes", 0)?,
        };
        let buffer_size = buffer_size(inputs, 4, "")?;
        let compression = if has_compression { compression(inputs, 5)? } else { Compression::None };
        let kind = if has_compression { "FixedLengthRecordV2" } else { "FixedLengthRecord" };
        Ok(Files::new(kind, names, FixedLength { layout, compression, buffer_size }, systems.clone()))
    })
}

/// A size from an input that is at least `least`, which is 0 or 1.
fn size(inputs: &mut Inputs, index: usize, name: &str, least: i64) -> Result<u64> {
    let size: i64 = scalar(inputs, index, name)?;
    let rule = if least > 0 { "> 0" } else { ">= 0" };
    if size < least { Err(invalid!("`{name}` must be {rule}")) } else { Ok(size as u64) }
}

struct FixedLength {
    layout: Layout,
    compression: Compression,
    buffer_size: usize,
}

/// The parts of a file, in bytes.
#[derive(Clone, Copy)]
struct Layout {
    header: u64,
    record: u64,
    footer: u64,
}

impl Layout {
    fn error(&self, code: Code, name: &str, body: u64) -> Error {
        let message = format!(
            "Excluding the header ({} bytes) and footer ({} bytes), input file \"{name}\" has body length {body} bytes, \
             which is not an exact multiple of the record length ({} bytes).",
            self.header, self.footer, self.record
        );
        Error::new(code, message)
    }

    /// The length of the body; wraps around like TensorFlow's if the file is too short.
    fn body(&self, file: u64) -> u64 {
        file.wrapping_sub(self.header.wrapping_add(self.footer))
    }
}

impl Format for FixedLength {
    type Reader = Pieces;
    const POSITION: &'static str = "current_pos";
    const NO_POSITION: Option<i64> = Some(-1);

    fn open(&self, systems: &FileSystems, file: &FileName<'_>, position: Option<u64>) -> Result<Pieces> {
        let (layout, compressed) = (self.layout, self.compression != Compression::None);
        let mut limit = None;
        if !compressed {
            let size = systems.stat(file.name)?.size;
            let body = layout.body(size);
            if position.is_none() && !body.is_multiple_of(layout.record) {
                return Err(layout.error(Code::InvalidArgument, file.name, body));
            }
            limit = Some(size.saturating_sub(layout.footer));
        }
        // The saved position of a compressed file is behind what TensorFlow reads ahead, a footer.
        let ahead = if compressed { layout.footer } else { 0 };
        let begin = position.map(|position| position.saturating_sub(ahead));
        let at = begin.unwrap_or(0);
        let mut stream = InputStream::open_at(systems, file.name, self.compression, self.buffer_size, at)?;
        if begin.is_none() && limit.is_none_or(|limit| layout.header <= limit) && !stream.skip(layout.header)? {
            return Err(out_of_range!("reached end of file"));
        }
        Ok(Pieces { stream, layout, limit, ahead, name: file.name.to_string() })
    }
}

/// The pieces of an open file.
struct Pieces {
    stream: InputStream,
    layout: Layout,
    /// The offset of the footer, if the size of the file is known.
    limit: Option<u64>,
    ahead: u64,
    name: String,
}

impl Records for Pieces {
    fn next(&mut self) -> Result<Option<Element>> {
        if self.limit.is_some_and(|limit| self.stream.offset() >= limit) {
            return Ok(None);
        }
        let record = usize::try_from(self.layout.record).unwrap_or(usize::MAX);
        let wanted = record.saturating_add(usize::try_from(self.ahead).unwrap_or(usize::MAX));
        let left = self.stream.peek(wanted)?.len();
        if left == wanted {
            return self.stream.read(record).map(|record| Some(string_element(record)));
        }
        if left as u64 <= self.ahead && self.limit.is_none() {
            return Ok(None);
        }
        self.stream.read(wanted)?; // the next request ends the file
        let size = self.stream.offset();
        Err(self.layout.error(Code::DataLoss, &self.name, self.layout.body(size)))
    }

    fn position(&self) -> u64 {
        self.stream.offset() + self.ahead
    }
}

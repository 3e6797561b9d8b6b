//! CSVDataset and CSVDatasetV2: the rows of files of comma-separated values.

use super::csv_fields::{Layout, Scan};
use super::files::{FileName, Files, Format, Records, compression_of, file_names};
use crate::attrs::{DATASET, dataset_kernel, scalar, spec, string_scalar};
use crate::{Element, Spec, StateReader, StateWriter, full_name};
use io::{Compression, FileSystems, InputStream};
use op::shapes;
use op::{Grad, Inputs, Kernel, Op, Setup};
use ops::checkpoint::systems;
use status::{Error, Result, invalid};
use std::sync::Arc;
use tensor::{Bytes, DType, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "CSVDataset(filenames: string, compression_type: string, buffer_size: int64, header: bool, \
              field_delim: string, use_quote_delim: bool, na_value: string, select_cols: int64, \
              record_defaults: [output_types]) -> handle: variant; \
              output_types: list({float, double, int32, int64, string}) >= 1; output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, false),
        facts: DATASET,
    },
    Op {
        def: "CSVDatasetV2(filenames: string, compression_type: string, buffer_size: int64, header: bool, \
              field_delim: string, use_quote_delim: bool, na_value: string, select_cols: int64, \
              record_defaults: [output_types], exclude_cols: int64) -> handle: variant; \
              output_types: list({float, double, int32, int64, string}) >= 1; output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, true),
        facts: DATASET,
    },
    Op {
        def: "ExperimentalCSVDataset(filenames: string, compression_type: string, buffer_size: int64, header: bool, \
              field_delim: string, use_quote_delim: bool, na_value: string, select_cols: int64, \
              record_defaults: [output_types]) -> handle: variant; \
              output_types: list({float, double, int32, int64, string}) >= 1; output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, false),
        facts: DATASET,
    },
];

/// The number of the first default among the inputs.
const DEFAULTS: usize = 8;

fn kernel(setup: &Setup<'_>, excludes: bool) -> Result<Kernel> {
    let (systems, spec) = (systems(setup)?, spec(setup)?);
    dataset_kernel(setup, move |_, inputs| {
        let names = file_names(inputs, 0, "filenames")?;
        let csv = Csv::new(inputs, &spec, excludes)?;
        Ok(Files::with_spec("CSV", names, csv, systems.clone(), spec.clone()))
    })
}

/// What is the same for all files.
struct Csv {
    compression: Compression,
    buffer_size: usize,
    has_header: bool,
    rules: Arc<Rules>,
}

/// How rows become elements.
struct Rules {
    layout: Layout,
    missing: Bytes,
    /// The columns to return, or those not to; all if both are empty.
    selected: Vec<i64>,
    excluded: Vec<i64>,
    defaults: Vec<Tensor>,
    types: Vec<DType>,
}

impl Csv {
    fn new(inputs: &mut Inputs, spec: &Spec, excludes: bool) -> Result<Csv> {
        let compression = string_scalar(inputs, 1, "compression_type")?;
        let defaults = defaults(inputs, spec.types.len())?;
        let selected = columns(inputs, 7, "`select_cols` must be a vector.")?;
        let excluded = match excludes {
            true => columns(inputs, DEFAULTS + defaults.len(), "`exclude_cols` must be a vector")?,
            false => Vec::new(),
        };
        let buffer_size: i64 = scalar(inputs, 2, "buffer_size")?;
        let buffer_size = usize::try_from(buffer_size).ok().filter(|&size| size > 0);
        let buffer_size = buffer_size.ok_or_else(|| invalid!("buffer_size should be positive"))?;
        let &[delimiter] = inputs.look(4).and_then(|delim| delim.to_string_scalar())?.as_ref() else {
            return Err(invalid!("field_delim should be only 1 char"));
        };
        let has_header = scalar(inputs, 3, "header")?;
        let layout = Layout { delimiter, quotes: scalar(inputs, 5, "use_quote_delim")? };
        let missing = inputs.look(6)?.to_string_scalar()?;
        let compression =
            compression_of(&compression).ok_or_else(|| invalid!("Unsupported compression_type: {compression}."))?;
        let rules = Rules { layout, missing, selected, excluded, defaults, types: spec.types.clone() };
        rules.check()?;
        Ok(Csv { compression, buffer_size, has_header, rules: Arc::new(rules) })
    }
}

fn defaults(inputs: &mut Inputs, count: usize) -> Result<Vec<Tensor>> {
    let defaults = inputs.tensors(DEFAULTS, count)?;
    for (field, default) in defaults.iter().enumerate() {
        if default.shape().rank() > 1 {
            return Err(invalid!("Each record default should be at most rank 1"));
        }
        if default.elements() > 1 {
            let count = default.elements();
            return Err(invalid!("There should only be 1 default per field but field {field} has {count}"));
        }
    }
    Ok(defaults)
}

fn columns(inputs: &Inputs, index: usize, error: &str) -> Result<Vec<i64>> {
    let columns = inputs.look(index)?;
    if columns.shape().rank() != 1 {
        return Err(invalid!("{error}"));
    }
    Ok(columns.values()?.to_vec())
}

impl Rules {
    fn check(&self) -> Result<()> {
        if !self.selected.is_empty() && self.selected.len() != self.types.len() {
            return Err(invalid!("select_cols should match output size"));
        }
        check_columns(&self.selected, "select_cols")?;
        if !self.selected.is_empty() && !self.excluded.is_empty() {
            return Err(invalid!("Either select_cols or exclude_cols should be empty"));
        }
        check_columns(&self.excluded, "exclude_cols")
    }

    /// A field as a component; an empty one gets the default.
    fn component(&self, index: usize, field: Bytes) -> Result<Tensor> {
        let (Some(&dtype), Some(default)) = (self.types.get(index), self.defaults.get(index)) else {
            return Err(invalid!("Expect {} fields but have more in record", self.types.len()));
        };
        if !field.is_empty() && field != self.missing {
            return parsed(index, field, dtype);
        }
        match default.elements() {
            1 => default.clone().reshaped([0usize; 0]),
            _ => Err(invalid!("Field {index} is required but missing in record!")),
        }
    }
}

fn check_columns(columns: &[i64], name: &str) -> Result<()> {
    if columns.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(invalid!("{name} should be strictly increasing indices"));
    }
    if columns.first().is_some_and(|&first| first < 0) {
        return Err(invalid!("{name} should be non-negative indices"));
    }
    Ok(())
}

fn parsed(index: usize, field: Bytes, dtype: DType) -> Result<Tensor> {
    let text = || std::str::from_utf8(field.trim_ascii()).ok();
    let number = match dtype {
        DType::STRING => return Ok(Tensor::string(field)),
        DType::I32 => text().and_then(|text| text.parse::<i32>().ok()).map(Tensor::scalar),
        DType::I64 => text().and_then(|text| text.parse::<i64>().ok()).map(Tensor::scalar),
        DType::F32 => text().and_then(|text| text.parse::<f32>().ok()).map(Tensor::scalar),
        DType::F64 => text().and_then(|text| text.parse::<f64>().ok()).map(Tensor::scalar),
        other => return Err(invalid!("csv: data type {other} not supported in field {index}")),
    };
    number.ok_or_else(|| {
        let text = String::from_utf8_lossy(&field);
        invalid!("Field {index} in record is not a valid {dtype}: {text}")
    })
}

/// The columns of a row that have been read.
struct Row<'a> {
    rules: &'a Rules,
    is_header: bool,
    element: Element,
    /// The first error: the rest of the row is read in spite of it, so that the next one can follow.
    error: Option<Error>,
    /// How many columns were read, and how many of them are listed as selected and as excluded.
    read: usize,
    selected: usize,
    excluded: usize,
}

impl<'a> Row<'a> {
    fn new(rules: &'a Rules, is_header: bool) -> Row<'a> {
        Row { rules, is_header, element: Element::new(), error: None, read: 0, selected: 0, excluded: 0 }
    }

    fn push(&mut self, field: Result<Bytes>) {
        let includes = self.includes();
        self.read += 1;
        let component = match field {
            Ok(field) if includes => self.rules.component(self.element.len(), field),
            Ok(_) => return,
            Err(error) => Err(error),
        };
        match component {
            Ok(component) => self.element.push(component),
            Err(error) => _ = self.error.get_or_insert(error),
        }
    }

    /// Whether the next column is asked for.
    fn includes(&mut self) -> bool {
        let number = self.read as i64;
        let Rules { selected, excluded, .. } = self.rules;
        let is_selected = selected.get(self.selected) == Some(&number);
        let is_excluded = excluded.get(self.excluded) == Some(&number);
        self.selected += usize::from(is_selected);
        self.excluded += usize::from(is_excluded);
        !self.is_header && (is_selected || selected.is_empty() && !is_excluded)
    }

    fn finish(self) -> Result<Element> {
        let (wanted, found) = (self.rules.types.len(), self.element.len());
        match self.error {
            Some(error) => Err(error),
            None if found != wanted && !self.is_header => {
                Err(invalid!("Expect {wanted} fields but have {found} in record"))
            }
            None => Ok(self.element),
        }
    }
}

impl Format for Csv {
    type Reader = CsvReader;

    fn open(&self, systems: &FileSystems, file: &FileName<'_>, position: Option<u64>) -> Result<CsvReader> {
        let at = position.unwrap_or(0);
        let stream = InputStream::open_at(systems, file.name, self.compression, self.buffer_size, at)?;
        Ok(CsvReader { stream, rules: self.rules.clone(), expects_header: self.has_header && position.is_none() })
    }

    /// TensorFlow saves the number of buffers that it read, and the position in the last one.
    fn save(&self, writer: &mut StateWriter, prefix: &str, index: usize, position: Option<u64>) {
        let mut int = |key: &str, value: u64| writer.int(prefix, &full_name(prefix, key), value as i64);
        int("current_file_index", index as u64);
        if let Some(position) = position {
            int("pos", position % self.buffer_size as u64);
            int("num_buffer_reads", position / self.buffer_size as u64 + 1);
        }
    }

    fn restore(&self, reader: &StateReader, prefix: &str) -> Result<(usize, Option<u64>)> {
        let index = reader.count(prefix, "current_file_index")?;
        if !reader.contains(prefix, "pos") {
            return Ok((index, None));
        }
        let full = reader.count(prefix, "num_buffer_reads")?.saturating_sub(1);
        let position = full.saturating_mul(self.buffer_size).saturating_add(reader.count(prefix, "pos")?);
        Ok((index, Some(position as u64)))
    }
}

/// The rows of an open file.
struct CsvReader {
    stream: InputStream,
    rules: Arc<Rules>,
    expects_header: bool,
}

impl CsvReader {
    /// Reads the next row; none at the end.
    fn row(&mut self, is_header: bool) -> Result<Option<Result<Element>>> {
        let mut block = self.stream.peek_block(1)?;
        let mut is_last = false;
        while !block.is_empty() {
            let mut row = Row::new(&self.rules, is_header);
            let scan = Scan { data: &block, is_last, layout: self.rules.layout };
            if let Some(length) = scan.record(|field| row.push(field)) {
                let row = row.finish();
                self.stream.read(length)?;
                return Ok(Some(row));
            }
            let more = self.stream.peek_block(block.len().saturating_mul(2))?;
            is_last = more.len() == block.len();
            block = more;
        }
        Ok(None)
    }
}

impl Records for CsvReader {
    fn next(&mut self) -> Result<Option<Element>> {
        if std::mem::take(&mut self.expects_header) && !matches!(self.row(true), Ok(Some(Ok(_)))) {
            return Err(invalid!("Can't read header of file"));
        }
        self.row(false)?.transpose()
    }

    fn position(&self) -> u64 {
        self.stream.offset()
    }
}

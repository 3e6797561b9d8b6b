//! Datasets that read files. Names may have the scheme of any file system: `s3://bucket/train.tfrecord`.

use crate::{Compression, Dataset};
use graph::{Output, Scope};
use io::fs::path::to_str;
use status::Result;
use std::path::Path;
use tensor::{Bytes, DType, PartialShape, Tensor};

/// How a file of comma-separated values is read.
///
/// # Examples
///
/// ```
/// use flowgrid_input::CsvOptions;
///
/// let options = CsvOptions { has_header: true, delimiter: ';', ..CsvOptions::default() };
/// assert!(options.quotes);
/// ```
#[derive(Clone, Debug)]
pub struct CsvOptions {
    /// Skips the first line.
    pub has_header: bool,
    /// Stands between the fields.
    pub delimiter: char,
    /// Fields may stand in double quotes.
    pub quotes: bool,
    /// A field with this text has its default.
    pub missing: String,
    /// The compression of the files.
    pub compression: Compression,
}

impl Default for CsvOptions {
    fn default() -> CsvOptions {
        let (missing, compression) = (String::new(), Compression::None);
        CsvOptions { has_header: false, delimiter: ',', quotes: true, missing, compression }
    }
}

impl Dataset {
    /// The lines of text files, without their ends.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::Graph;
    ///
    /// let path = std::env::temp_dir().join(format!("flowgrid-doc-lines-{}", std::process::id()));
    /// std::fs::write(&path, "one\ntwo\n")?;
    /// let lines = Dataset::text_lines(&Graph::with_ops(data::registry()).root(), [&path]);
    /// assert_eq!(lines.values::<String>()?.collect::<Result<Vec<_>, _>>()?, ["one", "two"]);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn text_lines<N: AsRef<Path>>(scope: &Scope, files: impl IntoIterator<Item = N>) -> Dataset {
        Dataset::text_lines_with(scope, files, Compression::None)
    }

    /// The lines of compressed text files, without their ends.
    pub fn text_lines_with<N: AsRef<Path>>(
        scope: &Scope,
        files: impl IntoIterator<Item = N>,
        compression: Compression,
    ) -> Dataset {
        Dataset::strings(scope, "TextLineDataset", &names(scope, files), compression)
    }

    /// The records of TFRecord files.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::Graph;
    /// use io::RecordWriter;
    ///
    /// let path = std::env::temp_dir().join(format!("flowgrid-doc-records-{}", std::process::id()));
    /// RecordWriter::create(&path)?.write_all(["one", "two"])?;
    /// let records = Dataset::tf_records(&Graph::with_ops(data::registry()).root(), [&path]);
    /// assert_eq!(records.values::<String>()?.collect::<Result<Vec<_>, _>>()?, ["one", "two"]);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn tf_records<N: AsRef<Path>>(scope: &Scope, files: impl IntoIterator<Item = N>) -> Dataset {
        Dataset::tf_records_with(scope, files, Compression::None)
    }

    /// The records of compressed TFRecord files.
    pub fn tf_records_with<N: AsRef<Path>>(
        scope: &Scope,
        files: impl IntoIterator<Item = N>,
        compression: Compression,
    ) -> Dataset {
        Dataset::tf_records_of(&names(scope, files), compression)
    }

    /// The records of TFRecord files, whose names are an output of the graph.
    pub fn tf_records_of(files: &Output, compression: Compression) -> Dataset {
        Dataset::strings(files.scope(), "TFRecordDataset", files, compression)
    }

    /// The records of files of records of one length, with a header and a footer that are skipped.
    pub fn fixed_length_records<N: AsRef<Path>>(
        scope: &Scope,
        files: impl IntoIterator<Item = N>,
        record: usize,
        (header, footer): (usize, usize),
    ) -> Dataset {
        let files = names(scope, files);
        let numbers = [header, record, footer, 0].map(|value| constant(scope, Tensor::scalar(value as i64)));
        Dataset::build(scope, "FixedLengthRecordDataset", vec![DType::STRING], vec![PartialShape::scalar()], |op| {
            let [header, record, footer, buffer] = &numbers;
            op.input(&files).input(header).input(record).input(footer).input(buffer)
        })
    }

    /// The names of the files that match a pattern such as `data/*.tfrecord`, in the order of their names.
    pub fn list_files(scope: &Scope, pattern: &str) -> Dataset {
        let pattern = constant(scope, Tensor::string(pattern.to_string()));
        let types = (vec![DType::STRING], vec![PartialShape::scalar()]);
        Dataset::build(scope, "MatchingFilesDataset", types.0, types.1, |op| op.input(&pattern))
    }

    /// The lines of files of comma-separated values. The defaults give the type of each field; one without elements says
    /// that the field is required.
    ///
    /// ```
    /// use flowgrid_input::{CsvOptions, Dataset};
    /// use graph::Graph;
    /// use tensor::{DType, Tensor};
    ///
    /// let path = std::env::temp_dir().join(format!("flowgrid-doc-csv-{}", std::process::id()));
    /// std::fs::write(&path, "1,0.5\n2,\n")?;
    /// let defaults = [Tensor::zeros_of(DType::I64, [0])?, Tensor::scalar(-1f32)];
    /// let graph = Graph::with_ops(data::registry());
    /// let rows = Dataset::csv(&graph.root(), [&path], &defaults, &CsvOptions::default());
    /// let second = rows.iter()?.nth(1).expect("two rows")?;
    /// assert_eq!((second[0].to_scalar::<i64>()?, second[1].to_scalar::<f32>()?), (2, -1.0));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn csv<N: AsRef<Path>>(
        scope: &Scope,
        files: impl IntoIterator<Item = N>,
        defaults: &[Tensor],
        options: &CsvOptions,
    ) -> Dataset {
        let (files, flag) = (names(scope, files), |value: bool| constant(scope, Tensor::scalar(value)));
        let text = |value: &str| constant(scope, Tensor::string(value.to_string()));
        let defaults: Vec<Output> = defaults.iter().map(|default| constant(scope, default.clone())).collect();
        let types: Vec<DType> = defaults.iter().map(Output::dtype).collect();
        let shapes = vec![PartialShape::scalar(); types.len()];
        let columns = constant(scope, Tensor::vector::<i64>(&[]));
        let list = graph::AttrList { shapes: shapes.clone(), ..graph::AttrList::default() };
        let op = scope.op("CSVDataset").input(&files).input(&text(compression_name(options.compression)));
        let op = op.input(&constant(scope, Tensor::scalar(1i64 << 22))).input(&flag(options.has_header));
        let op = op.input(&text(&options.delimiter.to_string())).input(&flag(options.quotes));
        let op = op.input(&text(&options.missing)).input(&columns).inputs(&defaults);
        let handle = op.attr("output_shapes", graph::AttrValue::from(list)).output();
        Dataset::from_output(handle, types, shapes)
    }

    /// An op that reads strings from files: their names, the compression, and the size of the buffer.
    fn strings(scope: &Scope, op: &str, files: &Output, compression: Compression) -> Dataset {
        let compression = constant(scope, Tensor::string(compression_name(compression)));
        let buffer = constant(scope, Tensor::scalar(1i64 << 18));
        // These ops have no attributes for types and shapes: each element is one string.
        let handle = scope.op(op).input(files).input(&compression).input(&buffer).output();
        Dataset::from_output(handle, vec![DType::STRING], vec![PartialShape::scalar()])
    }
}

/// The names of files; one that is not UTF-8 is a building error.
fn names<N: AsRef<Path>>(scope: &Scope, files: impl IntoIterator<Item = N>) -> Output {
    let name = |file: N| Ok(Bytes::copy_from_slice(to_str(file.as_ref())?.as_bytes()));
    let names: Result<Vec<Bytes>> = files.into_iter().map(name).collect();
    let names = names.unwrap_or_else(|error| {
        scope.graph().fail(error);
        Vec::new()
    });
    constant(scope, Tensor::from_strings([names.len()], names).expect("as many names as the shape says"))
}

fn constant(scope: &Scope, value: Tensor) -> Output {
    ops::array::constant(scope, value)
}

fn compression_name(compression: Compression) -> &'static str {
    match compression {
        Compression::None => "",
        Compression::Zlib => "ZLIB",
        Compression::Gzip => "GZIP",
        Compression::Snappy => "SNAPPY",
    }
}

//! DecodeCSV: records of comma-separated fields, with a tensor for each column.

use crate::string::to_number::{real, trimmed, whole};
use graph::Output;
use op::shapes::unchanged;
use op::{Kernel, Op, Setup, many};
use status::{Result, invalid};
use tensor::{Bytes, DType, Element, Tensor};

pub(crate) const OPS: &[Op] = parsers! {
    "DecodeCSV(records: string, record_defaults: [OUT_TYPE]) -> output: [OUT_TYPE]; \
     OUT_TYPE: list({float, double, int32, int64, string}) >= 1; field_delim: string = \",\"; \
     use_quote_delim: bool = true; na_value: string = \"\"; select_cols: list(int) = []", unchanged, csv_kernel;
};

/// The columns of CSV records; a default has one element, or none if its field must be there.
pub fn decode_csv(records: &Output, defaults: &[Output]) -> Vec<Output> {
    let node = records.scope().op("DecodeCSV").input(records).inputs(defaults).node();
    (0..defaults.len()).map(|i| node.output(i)).collect()
}

/// How records are split into fields.
struct Format {
    types: Vec<DType>,
    delimiter: u8,
    quotes: bool,
    missing: Bytes,
    columns: Vec<i64>,
}

fn csv_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let format = Format {
        types: setup.types("OUT_TYPE")?,
        delimiter: delimiter(&setup.bytes("field_delim")?)?,
        quotes: setup.bool("use_quote_delim")?,
        missing: setup.bytes("na_value")?,
        columns: setup.ints("select_cols")?,
    };
    format.check_columns()?;
    Ok(many(move |_, mut inputs| {
        let (records, defaults) = (inputs.tensor(0)?, inputs.tensors_from(1)?);
        check_defaults(&defaults)?;
        let table = format.table(&records)?;
        let columns = format.types.iter().zip(&defaults).enumerate();
        columns
            .map(|(field, (&dtype, default))| Ok(format.column(&records, &table, field, dtype, default)?.into()))
            .collect()
    }))
}

fn delimiter(text: &[u8]) -> Result<u8> {
    match text {
        [byte] => Ok(*byte),
        _ => Err(invalid!("field_delim should be only 1 char")),
    }
}

fn check_defaults(defaults: &[Tensor]) -> Result<()> {
    for (field, default) in defaults.iter().enumerate() {
        if default.shape().rank() > 1 {
            return Err(invalid!("Each record default should be at most rank 1"));
        }
        if default.elements() > 1 {
            let count = default.elements();
            return Err(invalid!("There should only be 1 default per field but field {field} has {count}"));
        }
    }
    Ok(())
}

impl Format {
    fn check_columns(&self) -> Result<()> {
        if !self.columns.is_empty() && self.columns.len() != self.types.len() {
            return Err(invalid!("select_cols should match output size"));
        }
        if self.columns.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(invalid!("select_cols should be strictly increasing indices"));
        }
        if self.columns.first().is_some_and(|&first| first < 0) {
            return Err(invalid!("select_cols should be non-negative indices"));
        }
        Ok(())
    }

    /// The fields of all records.
    fn table(&self, records: &Tensor) -> Result<Vec<Vec<Bytes>>> {
        let fields = |(index, record): (usize, &Bytes)| {
            let fields = self.fields(record)?;
            match (self.types.len(), fields.len()) {
                (wanted, found) if wanted == found => Ok(fields),
                (wanted, found) => Err(invalid!("Expect {wanted} fields but have {found} in record {index}")),
            }
        };
        records.strings()?.iter().enumerate().map(fields).collect()
    }

    /// The requested fields of a record.
    fn fields(&self, record: &Bytes) -> Result<Vec<Bytes>> {
        let (mut at, mut number, mut fields) = (0, 0, Vec::new());
        while at < record.len() {
            if matches!(record[at], b'\n' | b'\r') {
                at += 1;
                continue;
            }
            let (field, next) = match self.quotes && record[at] == b'"' {
                true => self.quoted(record, at + 1)?,
                false => self.plain(record, at)?,
            };
            if self.includes(number, fields.len()) {
                fields.push(field);
                if fields.len() == self.columns.len() {
                    return Ok(fields);
                }
            }
            (at, number) = (next, number + 1);
        }
        if self.includes(number, fields.len()) && record.last() == Some(&self.delimiter) {
            fields.push(Bytes::new());
        }
        Ok(fields)
    }

    /// Whether field `number` is asked for, `taken` being taken already.
    fn includes(&self, number: i64, taken: usize) -> bool {
        self.columns.is_empty() || self.columns.get(taken) == Some(&number)
    }

    /// A field up to the next delimiter, and where the one after it begins.
    fn plain(&self, record: &Bytes, start: usize) -> Result<(Bytes, usize)> {
        let length = record[start..].iter().position(|&byte| byte == self.delimiter);
        let end = length.map_or(record.len(), |length| start + length);
        let wrong = |&byte: &u8| byte == b'\n' || byte == b'\r' || self.quotes && byte == b'"';
        if record[start..end].iter().any(wrong) {
            return Err(invalid!("Unquoted fields cannot have quotes/CRLFs inside"));
        }
        Ok((record.slice(start..end), end + 1))
    }

    /// A field up to a quote that a delimiter or the end follows, two quotes being one.
    fn quoted(&self, record: &Bytes, start: usize) -> Result<(Bytes, usize)> {
        let (mut at, mut field) = (start, Vec::new());
        while at + 1 < record.len() && (record[at] != b'"' || record[at + 1] != self.delimiter) {
            if record[at] == b'"' {
                if record[at + 1] != b'"' {
                    return Err(invalid!("Quote inside a string has to be escaped by another quote"));
                }
                at += 1;
            }
            field.push(record[at]);
            at += 1;
        }
        if record.get(at) != Some(&b'"') || record.get(at + 1).is_some_and(|&next| next != self.delimiter) {
            return Err(invalid!("Quoted field has to end with quote followed by delim or end"));
        }
        Ok((field.into(), at + 2))
    }

    fn column(
        &self,
        records: &Tensor,
        table: &[Vec<Bytes>],
        field: usize,
        dtype: DType,
        default: &Tensor,
    ) -> Result<Tensor> {
        let column = Column { format: self, records, table, field, default };
        match dtype {
            DType::F32 => column.numbers("float", |text| real(text).map(|number| number.0)),
            DType::F64 => column.numbers("double", |text| real(text).map(|number| number.1)),
            DType::I32 => column.numbers::<i32>("int32", |text| whole(text, true)?.parse().ok()),
            DType::I64 => column.numbers::<i64>("int64", |text| whole(text, true)?.parse().ok()),
            DType::STRING => column.strings(),
            other => Err(invalid!("csv: data type {other} not supported in field {field}")),
        }
    }
}

/// One field of all records.
struct Column<'a> {
    format: &'a Format,
    records: &'a Tensor,
    table: &'a [Vec<Bytes>],
    field: usize,
    default: &'a Tensor,
}

impl Column<'_> {
    /// The field of each record, or the default; an error if there is none.
    fn cells<'a, T: Clone>(
        &'a self,
        default: Option<&'a T>,
        read: impl Fn(usize, &Bytes) -> Result<T> + 'a,
    ) -> impl Iterator<Item = Result<T>> + 'a {
        self.table.iter().enumerate().map(move |(index, fields)| {
            let text = &fields[self.field];
            if !text.is_empty() && *text != self.format.missing {
                return read(index, text);
            }
            let field = self.field;
            default.cloned().ok_or_else(|| invalid!("Field {field} is required but missing in record {index}!"))
        })
    }

    fn numbers<T: Element>(&self, name: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Tensor> {
        let read = |index: usize, text: &Bytes| {
            let number = std::str::from_utf8(trimmed(text)).ok().and_then(&parse);
            number.ok_or_else(|| {
                let (field, text) = (self.field, String::from_utf8_lossy(text));
                invalid!("Field {field} in record {index} is not a valid {name}: {text}")
            })
        };
        let numbers = self.cells(self.default.values::<T>()?.first(), read).collect::<Result<Vec<T>>>()?;
        Tensor::from_slice(self.records.shape(), &numbers)
    }

    fn strings(&self) -> Result<Tensor> {
        let strings = self.cells(self.default.strings()?.first(), |_, text| Ok(text.clone()));
        Tensor::from_strings(self.records.shape(), strings.collect::<Result<Vec<Bytes>>>()?)
    }
}

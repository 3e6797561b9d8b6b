//! Reads keys and values from the lines of a text file.

use op::Setup;
use status::{Result, invalid, out_of_range};
use tensor::{Bytes, DType, Tensor};

/// Which parts of a line are key and value.
pub(crate) struct Columns {
    key: i64,
    value: i64,
    vocab_size: Option<usize>,
    delimiter: u8,
    offset: i64,
}

const LINE_NUMBER: i64 = -1;
const WHOLE_LINE: i64 = -2;

impl Columns {
    /// Reads the attributes of a node.
    pub fn of(setup: &Setup<'_>) -> Result<Columns> {
        let delimiter = setup.bytes("delimiter")?;
        let [delimiter] = delimiter[..] else {
            return Err(invalid!("delimiter should be only 1 char"));
        };
        Ok(Columns {
            key: setup.int("key_index")?,
            value: setup.int("value_index")?,
            vocab_size: usize::try_from(setup.int("vocab_size")?).ok(),
            delimiter,
            offset: setup.int("offset")?,
        })
    }

    /// Whether parts of lines can be keys and values of these types.
    pub fn check(&self, key: DType, value: DType) -> Result<()> {
        let is_text = |dtype: DType| dtype.is_integer() || dtype == DType::STRING;
        if self.key == LINE_NUMBER && key != DType::I64 {
            return Err(invalid!("Key index for line number requires table key dtype of int64, got {key}"));
        }
        if self.key == WHOLE_LINE && !is_text(key) {
            return Err(invalid!("Key index for whole line requires string or integer table key, got {key}"));
        }
        if self.value == LINE_NUMBER && value != DType::I64 {
            return Err(invalid!("Value index for line number requires table value dtype of int64, got {value}"));
        }
        if self.value == WHOLE_LINE && !is_text(value) {
            return Err(invalid!(
                "Value index for whole line requires table value dtype of integer or string, got {value}"
            ));
        }
        Ok(())
    }

    /// The keys and values in a file.
    pub fn read(&self, file: &str, contents: &[u8], key: DType, value: DType) -> Result<(Tensor, Tensor)> {
        let (mut keys, mut values) = (Column::new(key)?, Column::new(value)?);
        let mut position = 0;
        let mut count = 0;
        for line in contents.split_inclusive(|&byte| byte == b'\n') {
            if self.vocab_size.is_some_and(|size| count >= size) {
                break;
            }
            position += line.len();
            let line: Vec<u8> = line.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
            if line.is_empty() {
                return Err(invalid!("Invalid content in {file}: empty line found at position {position}."));
            }
            let tokens = self.tokens(file, count, &line)?;
            keys.push(self.part(self.key, &line, &tokens), count, self.offset)?;
            values.push(self.part(self.value, &line, &tokens), count, self.offset)?;
            count += 1;
        }
        match self.vocab_size {
            Some(size) if size != count => {
                Err(invalid!("Invalid vocab_size in {file}: expected {size} but got {count}"))
            }
            _ if count == 0 => Err(out_of_range!("eof")),
            _ => Ok((keys.tensor()?, values.tensor()?)),
        }
    }

    fn tokens<'a>(&self, file: &str, number: usize, line: &'a [u8]) -> Result<Vec<&'a [u8]>> {
        let Ok(last) = usize::try_from(self.key.max(self.value)) else { return Ok(Vec::new()) };
        let tokens: Vec<&[u8]> = line.split(|&byte| byte == self.delimiter).collect();
        if tokens.len() <= last {
            return Err(invalid!(
                "Invalid number of columns in {file} line {number} ({}) : expected at least {} got {}",
                String::from_utf8_lossy(line),
                last + 1,
                tokens.len()
            ));
        }
        Ok(tokens)
    }

    /// A column of a line; none means the line number.
    fn part<'a>(&self, index: i64, line: &'a [u8], tokens: &[&'a [u8]]) -> Option<&'a [u8]> {
        match index {
            LINE_NUMBER => None,
            WHOLE_LINE => Some(line),
            index => usize::try_from(index).ok().and_then(|index| tokens.get(index).copied()),
        }
    }
}

/// Values of one type in the making.
enum Column {
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Strings(Vec<Bytes>),
}

impl Column {
    fn new(dtype: DType) -> Result<Column> {
        match dtype {
            DType::I32 => Ok(Column::I32(Vec::new())),
            DType::I64 => Ok(Column::I64(Vec::new())),
            DType::F32 => Ok(Column::F32(Vec::new())),
            DType::F64 => Ok(Column::F64(Vec::new())),
            DType::STRING => Ok(Column::Strings(Vec::new())),
            other => Err(invalid!("Data type {other} not supported.")),
        }
    }

    fn push(&mut self, part: Option<&[u8]>, line: usize, offset: i64) -> Result<()> {
        let Some(part) = part else {
            if let Column::I64(values) = self {
                values.push((line as i64).wrapping_add(offset));
            }
            return Ok(());
        };
        match self {
            Column::I32(values) => values.push(parsed::<i32>(part, line, "int32")?.wrapping_add(offset as i32)),
            Column::I64(values) => values.push(parsed(part, line, "int64")?),
            Column::F32(values) => values.push(parsed(part, line, "float")?),
            Column::F64(values) => values.push(parsed(part, line, "double")?),
            Column::Strings(values) => values.push(Bytes::copy_from_slice(part)),
        }
        Ok(())
    }

    fn tensor(self) -> Result<Tensor> {
        Ok(match self {
            Column::I32(values) => Tensor::vector(&values),
            Column::I64(values) => Tensor::vector(&values),
            Column::F32(values) => Tensor::vector(&values),
            Column::F64(values) => Tensor::vector(&values),
            Column::Strings(values) => Tensor::from_strings([values.len()], values)?,
        })
    }
}

fn parsed<T: std::str::FromStr>(part: &[u8], line: usize, dtype: &str) -> Result<T> {
    let text = String::from_utf8_lossy(part);
    let bad = |_| invalid!("Field {text} in line {line} is not a valid {dtype}.");
    text.trim().parse().map_err(bad)
}

//! Encoding of one change of one value.

use super::{Found, Kept};
use crate::crc;
use crate::fs::data_loss;
use bytes::Bytes;
use status::{Result, invalid};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use tensor::{Buffer, DType, Shape, Tensor};

/// The identity of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// One of two separate name spaces.
    pub reference: bool,
    /// The container.
    pub container: String,
    /// The name in the container.
    pub name: String,
}

/// How a value changed.
pub enum Change<'a> {
    /// The whole value is replaced.
    Value(&'a Tensor),
    /// Some rows are replaced.
    Rows(&'a Tensor, &'a [usize]),
    /// The value is deleted.
    Gone,
    /// All values of the container are deleted.
    Forgotten,
}

// 1 to 4 were the kinds of a format without change numbers.
const VALUE: u8 = 5;
const ROWS: u8 = 6;
const GONE: u8 = 7;
const FORGOTTEN: u8 = 8;

/// The size of length and checksum, which precede each record.
const FRAME: usize = 16;

/// A record: the description of a change, and the new bytes.
pub(super) struct Record {
    /// The description, with space for length and checksum before it.
    head: Vec<u8>,
    body: Bytes,
    sequence: u64,
}

impl Record {
    /// The description of the change, without the new bytes.
    pub fn fields(&self) -> &[u8] {
        &self.head[FRAME..]
    }

    /// The new bytes.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The number of the change.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The parts that are written to the log, in order.
    pub fn framed(&mut self) -> [&[u8]; 2] {
        let sum = crc32c::crc32c_append(crc32c::crc32c(self.fields()), &self.body);
        let fields = self.fields().len();
        self.head[..8].copy_from_slice(&((fields + self.body.len()) as u64).to_le_bytes());
        self.head[8..12].copy_from_slice(&(fields as u32).to_le_bytes());
        self.head[12..FRAME].copy_from_slice(&crc::mask(sum).to_le_bytes());
        [&self.head, &self.body]
    }
}

/// The record of a change with its number and, for rows, the number of the change that set the value in the slots, or
/// 0.
pub(super) fn encode(entry: &Entry, change: &Change<'_>, sequence: u64, base: u64) -> Result<Record> {
    let mut head = vec![0; FRAME];
    let (kind, tensor) = match change {
        Change::Value(tensor) => (VALUE, Some(*tensor)),
        Change::Rows(tensor, _) => (ROWS, Some(*tensor)),
        Change::Gone => (GONE, None),
        Change::Forgotten => (FORGOTTEN, None),
    };
    head.extend([kind, u8::from(entry.reference)]);
    put_number(&mut head, sequence);
    put_text(&mut head, &entry.container);
    put_text(&mut head, &entry.name);
    let body = match (tensor, change) {
        (Some(tensor), Change::Rows(_, rows)) if tensor.buffer().is_some() => {
            put_number(&mut head, base);
            rows_of(&mut head, tensor, rows)?
        }
        (Some(tensor), _) => {
            // Rows of strings are rare, so they are written as a whole value.
            head[FRAME] = VALUE;
            whole(&mut head, tensor)?
        }
        _ => Bytes::new(),
    };
    Ok(Record { head, body, sequence })
}

/// Type, dimensions and bytes of a value. Strings are encoded as TensorFlow's message.
fn whole(head: &mut Vec<u8>, tensor: &Tensor) -> Result<Bytes> {
    put_number(head, tensor.dtype().number() as u64);
    put_number(head, tensor.shape().dims().len() as u64);
    tensor.shape().dims().iter().for_each(|&dim| put_number(head, dim as u64));
    match tensor.buffer() {
        Some(buffer) => Ok(buffer.to_bytes()),
        None => tensor::wire::tensor_to_bytes(tensor),
    }
}

fn rows_of(head: &mut Vec<u8>, tensor: &Tensor, rows: &[usize]) -> Result<Bytes> {
    let bytes = tensor.buffer().map(Buffer::bytes).unwrap_or_default();
    let count = tensor.shape().dims().first().copied().unwrap_or(0);
    let width = bytes.len().checked_div(count).unwrap_or(0);
    put_number(head, rows.len() as u64);
    let mut body = Vec::with_capacity(rows.len() * width);
    for &row in rows {
        put_number(head, row as u64);
        let part = bytes
            .get(row * width..(row + 1) * width)
            .ok_or_else(|| invalid!("row {row} is outside of a value with {count} rows"))?;
        body.extend_from_slice(part);
    }
    Ok(body.into())
}

fn put_number(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend(number.to_le_bytes());
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_number(bytes, text.len() as u64);
    bytes.extend(text.as_bytes());
}

/// A segment that is being read.
pub(super) struct Reading<'a> {
    file: BufReader<&'a File>,
    left: u64,
    complete: u64,
    torn: bool,
}

impl<'a> Reading<'a> {
    /// Reads the bytes between two offsets.
    pub fn new(mut file: &'a File, start: u64, end: u64) -> std::io::Result<Reading<'a>> {
        file.seek(SeekFrom::Start(start))?;
        let left = end.saturating_sub(start);
        Ok(Reading { file: BufReader::with_capacity(1 << 20, file), left, complete: start, torn: false })
    }

    /// True if the last error was an incomplete record, or one whose bytes were never written.
    pub fn is_torn(&self) -> bool {
        self.torn
    }

    /// The end of the last valid record before the error.
    pub fn complete(&self) -> u64 {
        self.complete
    }

    /// Applies the next change. Returns false at the end.
    pub fn next(&mut self, found: &mut Found) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        let frame: [u8; FRAME] = match self.take(FRAME as u64)?.try_into() {
            Ok(frame) => frame,
            Err(_) => return Err(data_loss("a record without length and checksum")),
        };
        let number = |range: std::ops::Range<usize>| {
            frame[range].iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte))
        };
        let (len, head, sum) = (number(0..8), number(8..12), number(12..16));
        let record = self.take(len)?;
        if u64::from(crc::masked(&record)) != sum || head > len {
            self.torn = true;
            return Err(data_loss("a record whose checksum is wrong"));
        }
        apply(&record[..head as usize], &record[head as usize..], found)?;
        self.complete += FRAME as u64 + len;
        Ok(true)
    }

    fn take(&mut self, len: u64) -> Result<Vec<u8>> {
        if len > self.left {
            self.torn = true;
            return Err(data_loss("an incomplete record"));
        }
        let mut bytes = vec![0; len as usize]; // not more than the file has
        self.file.read_exact(&mut bytes).map_err(|error| data_loss(error.to_string()))?;
        self.left -= len;
        Ok(bytes)
    }
}

/// The identity of a change.
pub(super) fn sequence(fields: &[u8]) -> Option<u64> {
    Fields(fields.get(2..)?).number().ok()
}

/// Applies a change to the values found so far. Returns the entry and the change number, for a change of one value.
pub(super) fn apply(head: &[u8], body: &[u8], found: &mut Found) -> Result<Option<Entry>> {
    let mut fields = Fields(head);
    let (kind, reference, sequence) = (fields.byte()?, fields.byte()? != 0, fields.number()?);
    let entry = Entry { reference, container: fields.text()?, name: fields.text()? };
    found.last = found.last.max(sequence);
    let older = |kept: &Kept| kept.sequence < sequence;
    let base = if kind == ROWS { fields.number()? } else { 0 };
    match kind {
        VALUE if found.values.get(&entry).is_none_or(older) => {
            let value = value(&mut fields, body)?;
            found.awaited.remove(&entry);
            found.values.insert(entry.clone(), Kept { value, sequence, followed: false });
            return Ok(Some(entry));
        }
        VALUE => {}
        ROWS => match found.values.get_mut(&entry) {
            Some(kept) if older(kept) && (base == 0 || base == kept.sequence) => {
                put_rows(&mut fields, body, &mut kept.value)?;
                kept.followed = true;
            }
            None if base == 0 => drop(found.awaited.insert(entry)),
            // The slot already contains these rows, or holds a value that a power cut restored and to which they do not
            // belong.
            _ => {}
        },
        GONE => {
            found.awaited.remove(&entry);
            if found.values.get(&entry).is_some_and(older) {
                found.values.remove(&entry);
            }
        }
        FORGOTTEN => {
            found.awaited.retain(|other| other.container != entry.container);
            found.values.retain(|other, kept| other.container != entry.container || !older(kept));
        }
        1..=4 => return Err(data_loss("a record that an older version of this program wrote")),
        other => return Err(data_loss(format!("a record of unknown kind {other}"))),
    }
    Ok(None)
}

fn value(fields: &mut Fields<'_>, body: &[u8]) -> Result<Tensor> {
    let dtype = DType::from_number(fields.number()? as i32);
    let rank = fields.number()?;
    let dims: Vec<i64> = (0..rank).map(|_| Ok(fields.number()? as i64)).collect::<Result<_>>()?;
    if dtype.size() == 0 {
        return tensor::wire::tensor_from_bytes(&Bytes::copy_from_slice(body));
    }
    let mut tensor = Tensor::scratch_of(dtype, Shape::checked(&dims)?)?;
    let bytes = tensor.bytes_mut()?;
    if bytes.len() != body.len() {
        return Err(data_loss(format!("a value of {} bytes instead of {}", body.len(), bytes.len())));
    }
    bytes.copy_from_slice(body);
    Ok(tensor)
}

fn put_rows(fields: &mut Fields<'_>, body: &[u8], value: &mut Tensor) -> Result<()> {
    let count = fields.number()? as usize;
    let rows = value.shape().dims().first().copied().unwrap_or(0);
    let bytes = value.bytes_mut()?;
    let width = bytes.len().checked_div(rows).unwrap_or(0);
    for i in 0..count {
        let row = fields.number()? as usize;
        let bad = || data_loss(format!("row {row} is outside of a value with {rows} rows"));
        let source = body.get(i * width..(i + 1) * width).ok_or_else(bad)?;
        let place = row.checked_mul(width).and_then(|start| bytes.get_mut(start..start.checked_add(width)?));
        let place = place.ok_or_else(bad)?;
        place.copy_from_slice(source);
    }
    Ok(())
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(|| data_loss("a record that is too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u64> {
        Ok(self.take(8)?.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn text(&mut self) -> Result<String> {
        let len = usize::try_from(self.number()?).map_err(|_| data_loss("a name that is too long"))?;
        Ok(String::from_utf8_lossy(self.take(len)?).into_owned())
    }
}

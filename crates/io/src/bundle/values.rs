//! Encoding of tensors in checkpoints: numbers as they are in memory, strings and variants after their lengths.

use super::{Entry, Watch, wire};
use crate::coding::{put_varint, read_varint};
use crate::crc;
use crate::fs::{Pending, data_loss};
use bytes::{Buf, Bytes};
use status::{Result, unimplemented_op};
use tensor::{DType, Tensor};

/// The number of bytes per checksum update, so that they are still in the cache when they are written.
const PIECE: usize = 1 << 20;

/// Writes a tensor at the end of a file. Returns its size in the file and its checksum.
pub(super) fn write(tensor: &Tensor, file: &mut Pending, watch: Option<&Watch>) -> Result<(u64, u32)> {
    let mut out = Checked { file, watch, crc: 0, size: 0 };
    match tensor.dtype() {
        DType::STRING => out.strings(tensor.strings()?)?,
        DType::VARIANT => {
            for variant in tensor.variants()? {
                out.variant(&wire::encode_variant(variant)?)?;
            }
        }
        dtype => match tensor.buffer() {
            Some(buffer) => out.plain(buffer.bytes())?,
            None => return Err(unimplemented_op!("Saving data type {dtype} not yet supported")),
        },
    }
    Ok((out.size, out.crc))
}

struct Checked<'a> {
    file: &'a mut Pending,
    watch: Option<&'a Watch>,
    crc: u32,
    size: u64,
}

impl Checked<'_> {
    fn plain(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in bytes.chunks(PIECE) {
            self.crc = crc32c::crc32c_append(self.crc, piece);
            self.append(piece)?;
        }
        Ok(())
    }

    /// Writes bytes that the checksum does not cover in this form.
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.size += bytes.len() as u64;
        self.file.append(bytes)?;
        if let Some(watch) = self.watch {
            watch(bytes.len() as u64);
        }
        Ok(())
    }

    /// All lengths, their checksum, then all bytes.
    fn strings(&mut self, values: &[Bytes]) -> Result<()> {
        let mut lengths = Vec::with_capacity(values.len());
        for value in values {
            put_varint(&mut lengths, value.len() as u64);
            self.crc = add_length(self.crc, value.len() as u64);
        }
        self.append(&lengths)?;
        self.check()?;
        values.iter().try_for_each(|value| self.plain(value))
    }

    /// Length, bytes and checksum.
    fn variant(&mut self, bytes: &[u8]) -> Result<()> {
        let mut length = Vec::new();
        put_varint(&mut length, bytes.len() as u64);
        self.append(&length)?;
        self.crc = crc32c::crc32c_append(self.crc, &(bytes.len() as u64).to_le_bytes());
        self.plain(bytes)?;
        self.check()
    }

    /// Writes the checksum of all bytes before, and includes it in the checksum.
    fn check(&mut self) -> Result<()> {
        let check = crc::mask(self.crc).to_le_bytes();
        self.plain(&check)
    }
}

/// Adds the length of a string to the checksum: as four bytes, or as eight if it needs more.
fn add_length(crc: u32, length: u64) -> u32 {
    match u32::try_from(length) {
        Ok(short) => crc32c::crc32c_append(crc, &short.to_le_bytes()),
        Err(_) => crc32c::crc32c_append(crc, &length.to_le_bytes()),
    }
}

/// Reads a tensor of strings, and the checksum of the bytes that were read.
pub(super) fn read_strings(entry: &Entry, data: Bytes) -> Result<(Tensor, u32)> {
    let count = entry.shape.checked_elements()?;
    if data.is_empty() && count == 0 {
        return Ok((Tensor::from_strings(entry.shape.clone(), Vec::new())?, 0));
    }
    if count > data.len() {
        return Err(damaged(entry));
    }
    let (mut rest, mut crc) = (data, 0);
    let mut lengths = Vec::with_capacity(count);
    for _ in 0..count {
        let length = read_varint(&mut rest).map_err(|_| damaged(entry))?;
        crc = add_length(crc, length);
        lengths.push(length);
    }
    crc = checked(&mut rest, crc, entry)?;
    let mut values = Vec::with_capacity(count);
    for length in lengths {
        let value = take(&mut rest, length, entry)?;
        crc = crc32c::crc32c_append(crc, &value);
        values.push(value);
    }
    Ok((Tensor::from_strings(entry.shape.clone(), values)?, crc))
}

/// Reads a tensor of variants, and the checksum of the bytes that were read.
pub(super) fn read_variants(entry: &Entry, data: Bytes) -> Result<(Tensor, u32)> {
    let (mut rest, mut crc) = (data, 0);
    let mut values = Vec::new();
    for _ in 0..entry.shape.checked_elements()? {
        let length = read_varint(&mut rest).map_err(|_| damaged(entry))?;
        crc = crc32c::crc32c_append(crc, &length.to_le_bytes());
        let value = take(&mut rest, length, entry)?;
        crc = crc32c::crc32c_append(crc, &value);
        values.push(value);
        crc = checked(&mut rest, crc, entry)?;
    }
    Ok((wire::decode_variants(&entry.shape, values)?, crc))
}

fn take(rest: &mut Bytes, length: u64, entry: &Entry) -> Result<Bytes> {
    match usize::try_from(length) {
        Ok(length) if length <= rest.len() => Ok(rest.split_to(length)),
        _ => Err(damaged(entry)),
    }
}

/// Verifies a checksum of all bytes before. Returns the checksum that includes it.
fn checked(rest: &mut Bytes, crc: u32, entry: &Entry) -> Result<u32> {
    if rest.len() < 4 {
        return Err(damaged(entry));
    }
    let stored = rest.get_u32_le();
    if crc::unmask(stored) != crc {
        let expected = crc::unmask(stored);
        return Err(data_loss(format!(
            "The length checksum does not match: expected {expected:08} but actual is {crc:08}"
        )));
    }
    Ok(crc32c::crc32c_append(crc, &stored.to_le_bytes()))
}

fn damaged(entry: &Entry) -> status::Error {
    data_loss(format!("String lengths longer than expected offset {}", entry.offset.saturating_add(entry.size)))
}

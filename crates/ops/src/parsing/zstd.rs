//! Strings compressed with zstd, decompressed as in TensorFlow: as a whole, and only if the frame states the size.

use ruzstd::decoding::errors::{BlockHeaderReadError, BlockSizeError, FrameDecoderError};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use status::{Result, invalid};
use std::io::Read;
use tensor::Bytes;

/// The first bytes of a frame.
const FRAME: u32 = 0xFD2F_B528;
/// The first bytes of a skippable frame, without the last four bits.
const SKIPPED: u32 = 0x184D_2A50;

/// The message of zstd for input that ends too early.
const SHORT: &str = "Src size is incorrect";
/// The message of zstd for frames that are longer than they may be.
const LONG: &str = "Destination buffer is too small";
/// The message of zstd for blocks that cannot be decoded.
const CORRUPT: &str = "Data corruption detected";
/// The message of zstd for contents that do not match their checksum.
const CHECKSUM: &str = "Restored data doesn't match checksum";

/// The contents of the frames of a string; an error if they are longer than the first frame states, or than `most`.
pub(super) fn unpacked(string: &Bytes, most: u64) -> Result<Bytes> {
    let size = content_size(string).ok_or_else(|| invalid!("Failed to determine decompressed size"))?;
    let (mut rest, mut bytes) = (&string[..], Vec::new());
    while !rest.is_empty() {
        let read = frame(&mut rest, &mut bytes, size.min(most));
        read.map_err(|why| invalid!("Failed to decompress zstd input: {why}"))?;
    }
    Ok(bytes.into())
}

/// The size of the contents that the first frame states, if it does.
fn content_size(string: &[u8]) -> Option<u64> {
    let magic = u32::from_le_bytes(*string.first_chunk()?);
    if magic & !15 == SKIPPED {
        return Some(0);
    }
    let flags = *string.get(4).filter(|_| magic == FRAME)?;
    let single = flags & 32 != 0;
    let dictionary = [0, 1, 2, 4][usize::from(flags & 3)];
    let field = string.get(5 + usize::from(!single) + dictionary..)?;
    match flags >> 6 {
        0 if single => Some(u64::from(*field.first()?)),
        0 => None,
        1 => Some(u64::from(u16::from_le_bytes(*field.first_chunk()?)) + 256),
        2 => Some(u64::from(u32::from_le_bytes(*field.first_chunk()?))),
        _ => Some(u64::from_le_bytes(*field.first_chunk()?)),
    }
}

/// Unpacks the frame that `rest` begins with, and takes it from there.
fn frame(rest: &mut &[u8], bytes: &mut Vec<u8>, size: u64) -> std::result::Result<(), &'static str> {
    let magic = u32::from_le_bytes(*rest.first_chunk().ok_or(SHORT)?);
    if magic & !15 == SKIPPED {
        let length = rest.get(4..).and_then(|rest| rest.first_chunk()).ok_or(SHORT)?;
        *rest = rest.get(8 + u32::from_le_bytes(*length) as usize..).ok_or(SHORT)?;
        return Ok(());
    }
    if magic != FRAME {
        return Err(SHORT);
    }
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(u64::MAX);
    let room = size.saturating_sub(bytes.len() as u64);
    let read = StreamingDecoder::new_with_decoder(&mut *rest, &mut decoder)
        .map_err(|_| 0)
        .and_then(|stream| stream.take(room.saturating_add(1)).read_to_end(bytes).map_err(|error| announced(&error)));
    if let Err(block) = read {
        return Err(if rest.is_empty() || block > rest.len() { SHORT } else { CORRUPT });
    }
    if bytes.len() as u64 > size {
        return Err(LONG);
    }
    match decoder.get_checksum_from_data() {
        Some(stored) if Some(stored) != decoder.get_calculated_checksum() => Err(CHECKSUM),
        _ => Ok(()),
    }
}

/// The size that a block said it has, if that was too large for any block.
fn announced(error: &std::io::Error) -> usize {
    match error.get_ref().and_then(|cause| cause.downcast_ref()) {
        Some(FrameDecoderError::FailedToReadBlockHeader(BlockHeaderReadError::BlockSizeError(
            BlockSizeError::BlockSizeTooLarge { size },
        ))) => *size as usize,
        _ => 0,
    }
}

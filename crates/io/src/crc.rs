//! Checksums as TensorFlow stores them: CRC-32C, turned and shifted so that a checksum of checksums stays good.

/// What is added after the turn.
const DELTA: u32 = 0xa282_ead8;

/// The masked checksum of some bytes.
pub(crate) fn masked(bytes: &[u8]) -> u32 {
    mask(crc32c::crc32c(bytes))
}

/// A checksum, masked.
pub(crate) fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(DELTA)
}

/// A checksum, as it was before it was masked.
pub(crate) fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(DELTA).rotate_left(15)
}

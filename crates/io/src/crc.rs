//! Checksums as TensorFlow stores them: CRC-32C, masked by a rotation and an addition, because a CRC of data that
//! contains CRCs is weak.

/// The constant that is added after the rotation.
const DELTA: u32 = 0xa282_ead8;

/// The masked checksum of some bytes.
pub(crate) fn masked(bytes: &[u8]) -> u32 {
    mask(crc32c::crc32c(bytes))
}

/// Masks a checksum.
pub(crate) fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(DELTA)
}

/// The checksum before masking.
pub(crate) fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(DELTA).rotate_left(15)
}

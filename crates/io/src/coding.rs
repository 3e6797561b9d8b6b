//! Variable-length integers (varints), as in tables and string tensors.

use crate::fs::data_loss;
use bytes::{Buf, Bytes};
use status::Result;

/// Reads an integer from the front of the bytes.
pub(crate) fn read_varint(bytes: &mut Bytes) -> Result<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        if !bytes.has_remaining() {
            break;
        }
        let byte = bytes.get_u8();
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(data_loss("bad variable-length number"))
}

/// Appends an integer.
pub(crate) fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

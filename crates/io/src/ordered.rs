//! Encoding of strings and numbers as bytes that sort in the same order: the keys of slices in checkpoints.

/// Appends a string. Its end is marked, so more can follow.
pub(crate) fn put_string(bytes: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            0 => bytes.extend_from_slice(&[0, 0xff]),
            0xff => bytes.extend_from_slice(&[0xff, 0]),
            byte => bytes.push(byte),
        }
    }
    bytes.extend_from_slice(&[0, 1]);
}

/// Appends a number that is not negative: the number of bytes, then the bytes.
pub(crate) fn put_unsigned(bytes: &mut Vec<u8>, value: u64) {
    let length = 8 - value.leading_zeros() as usize / 8;
    bytes.push(length as u8);
    bytes.extend_from_slice(&value.to_be_bytes()[8 - length..]);
}

/// Appends a signed number: the sign, one more bit like it for each further byte, then the value.
pub(crate) fn put_signed(bytes: &mut Vec<u8>, value: i64) {
    let magnitude = if value < 0 { !value } else { value };
    let bits = 64 - magnitude.leading_zeros() as usize;
    let length = bits / 7 + 1;
    let mut all = [if value < 0 { 0xff } else { 0 }; 10];
    all[2..].copy_from_slice(&value.to_be_bytes());
    let coded = &mut all[10 - length..];
    let marks = if length < 16 { !(0xffff_u16 >> length) } else { 0xffff };
    coded[0] ^= (marks >> 8) as u8;
    if length > 1 {
        coded[1] ^= marks as u8;
    }
    bytes.extend_from_slice(coded);
}

/// Removes a string from the front; none if it is incomplete.
pub(crate) fn take_string(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if byte != 0 && byte != 0xff {
            text.push(byte);
            continue;
        }
        let (&next, rest) = bytes.split_first()?;
        *bytes = rest;
        match (byte, next) {
            (0, 1) => return Some(text),
            (0, 0xff) => text.push(0),
            (0xff, 0) => text.push(0xff),
            _ => return None,
        }
    }
}

/// Removes a number that is not negative from the front.
pub(crate) fn take_unsigned(bytes: &mut &[u8]) -> Option<u64> {
    let (&length, rest) = bytes.split_first()?;
    let value = rest.get(..usize::from(length)).filter(|value| value.len() <= 8)?;
    *bytes = &rest[value.len()..];
    Some(value.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// Removes a signed number from the front.
pub(crate) fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    let sign = if bytes.first()? & 0x80 == 0 { 0xff } else { 0 };
    let positive = |at: usize| bytes.get(at).copied().unwrap_or(0x80) ^ sign;
    let head = u16::from_be_bytes([positive(0), if positive(0) == 0xff { positive(1) } else { 0 }]);
    let length = (!head).leading_zeros() as usize;
    let coded = bytes.get(..length).filter(|coded| coded.len() <= 10)?;
    let mut value = i128::from(if sign == 0 { 0 } else { -1 });
    for &byte in coded {
        value = value << 8 | i128::from(byte);
    }
    // The bits of sign and length have the values that the number itself would have there.
    let marks = (1i128 << length) - 1;
    let value = value ^ marks << (7 * length);
    *bytes = &bytes[length..];
    i64::try_from(value).ok()
}

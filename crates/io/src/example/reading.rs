//! Reads Example and SequenceExample messages in place, without decoding them into objects: most features are packed
//! numbers, which are copied directly to their destination.

use crate::cursor::Cursor;
use bytes::Bytes;
use tensor::DType;

/// A name with its value.
pub type Entry<'a> = (&'a [u8], &'a [u8]);

/// The features of an Example message, in order; none if the bytes are not one.
pub fn entries(message: &[u8]) -> Option<Vec<Entry<'_>>> {
    let (mut found, mut cursor) = (Vec::new(), Cursor(message));
    while !cursor.is_empty() {
        match cursor.next_delimited(1) {
            Some(features) => map_entries(features, &mut found)?,
            None => cursor.skip_field()?,
        }
    }
    Some(found)
}

/// The context features and the feature lists of a SequenceExample message; none if the bytes are not one.
pub fn sequence_entries(message: &[u8]) -> Option<(Vec<Entry<'_>>, Vec<Entry<'_>>)> {
    let (mut context, mut lists, mut cursor) = (Vec::new(), Vec::new(), Cursor(message));
    while !cursor.is_empty() {
        if let Some(features) = cursor.next_delimited(1) {
            map_entries(features, &mut context)?;
        } else if let Some(features) = cursor.next_delimited(2) {
            map_entries(features, &mut lists)?;
        } else {
            cursor.skip_field()?;
        }
    }
    Some((context, lists))
}

/// The features of a FeatureList message; none if the bytes are not one.
pub fn rows(list: &[u8]) -> Option<Vec<&[u8]>> {
    let (mut found, mut cursor) = (Vec::new(), Cursor(list));
    while !cursor.is_empty() {
        found.push(cursor.next_delimited(1)?);
    }
    Some(found)
}

fn map_entries<'a>(features: &'a [u8], found: &mut Vec<Entry<'a>>) -> Option<()> {
    let mut cursor = Cursor(features);
    while !cursor.is_empty() {
        let mut entry = Cursor(cursor.next_delimited(1)?);
        let (mut key, mut value) = (&[][..], &[][..]);
        while !entry.is_empty() {
            match entry.next_delimited(1) {
                Some(bytes) => key = bytes,
                None => value = entry.next_delimited(2)?,
            }
        }
        found.push((key, value));
    }
    Some(())
}

/// The kind of a Feature message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Feature<'a> {
    /// No list.
    Nothing,
    /// A list of values of this type.
    List(DType, &'a [u8]),
    /// A list of an unknown kind.
    Unsupported,
}

/// The kind of a Feature message, without reading its list.
pub fn feature(message: &[u8]) -> Feature<'_> {
    match message.split_first() {
        None => Feature::Nothing,
        Some((0x0a, list)) => Feature::List(DType::STRING, list),
        Some((0x12, list)) => Feature::List(DType::F32, list),
        Some((0x1a, list)) => Feature::List(DType::I64, list),
        Some(_) => Feature::Unsupported,
    }
}

/// Appends the strings of a list in `message`; none if it is invalid.
pub fn bytes(list: &[u8], message: &Bytes, values: &mut Vec<Bytes>) -> Option<()> {
    let mut cursor = Cursor(Cursor(list).delimited()?);
    while !cursor.is_empty() {
        values.push(message.slice_ref(cursor.next_delimited(1)?));
    }
    Some(())
}

/// Appends the numbers of a list, packed or not; none if it is invalid.
pub fn floats(list: &[u8], values: &mut Vec<f32>) -> Option<()> {
    let mut cursor = Cursor(Cursor(list).delimited()?);
    while !cursor.is_empty() {
        if let Some(packed) = cursor.next_delimited(1) {
            let numbers = packed.chunks_exact(4);
            if !numbers.remainder().is_empty() {
                return None;
            }
            values.extend(numbers.map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])));
        } else {
            cursor.tag(0x0d)?;
            values.push(f32::from_le_bytes(cursor.take(4)?.try_into().ok()?));
        }
    }
    Some(())
}

/// Appends the numbers of a list, packed or not; none if it is invalid.
pub fn integers(list: &[u8], values: &mut Vec<i64>) -> Option<()> {
    let mut cursor = Cursor(Cursor(list).delimited()?);
    while !cursor.is_empty() {
        if let Some(packed) = cursor.next_delimited(1) {
            let mut packed = Cursor(packed);
            while !packed.is_empty() {
                values.push(packed.varint()? as i64);
            }
        } else {
            cursor.tag(0x08)?;
            values.push(cursor.varint()? as i64);
        }
    }
    Some(())
}

//! Reads Example and SequenceExample messages in place, without making messages of them: most features are numbers in
//! a row, which go straight to where they are wanted.

use bytes::Bytes;
use tensor::DType;

/// A name and what stands under it.
pub type Entry<'a> = (&'a [u8], &'a [u8]);

/// The features of an Example message in the order they stand there; none if it is not one.
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

/// The features of the context and the feature lists of a SequenceExample message; none if it is not one.
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

/// The features of a FeatureList message; none if it is not one.
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

/// What a Feature message holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Feature<'a> {
    /// No list.
    Nothing,
    /// A list of values of this type.
    List(DType, &'a [u8]),
    /// A list of a kind that there is not.
    Unsupported,
}

/// What a Feature message holds; its list is not looked at.
pub fn feature(message: &[u8]) -> Feature<'_> {
    match message.split_first() {
        None => Feature::Nothing,
        Some((0x0a, list)) => Feature::List(DType::STRING, list),
        Some((0x12, list)) => Feature::List(DType::F32, list),
        Some((0x1a, list)) => Feature::List(DType::I64, list),
        Some(_) => Feature::Unsupported,
    }
}

/// Adds the strings of a list that stands in `message`; none if it cannot be read.
pub fn bytes(list: &[u8], message: &Bytes, values: &mut Vec<Bytes>) -> Option<()> {
    let mut cursor = Cursor(Cursor(list).delimited()?);
    while !cursor.is_empty() {
        values.push(message.slice_ref(cursor.next_delimited(1)?));
    }
    Some(())
}

/// Adds the numbers of a list, packed or one by one; none if it cannot be read.
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

/// Adds the numbers of a list, packed or one by one; none if it cannot be read.
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

/// What is left of a message.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    fn varint(&mut self) -> Option<u64> {
        if let Some((&byte @ 0..0x80, rest)) = self.0.split_first() {
            self.0 = rest;
            return Some(byte.into());
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for (i, &byte) in self.0.iter().enumerate().take(10) {
            number |= u64::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                self.0 = &self.0[i + 1..];
                return Some(number);
            }
        }
        None
    }

    /// Goes past this tag, if it is the next.
    fn tag(&mut self, tag: u8) -> Option<()> {
        match self.0.split_first() {
            Some((&next, rest)) if next == tag => {
                self.0 = rest;
                Some(())
            }
            _ => None,
        }
    }

    /// A length and as many bytes.
    fn delimited(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.take(length)
    }

    /// The bytes of field `number`, if that is the next and all of it is there; else this stays where it is.
    fn next_delimited(&mut self, number: u8) -> Option<&'a [u8]> {
        let mut ahead = Cursor(self.0);
        ahead.tag(number << 3 | 2)?;
        let bytes = ahead.delimited()?;
        self.0 = ahead.0;
        Some(bytes)
    }

    /// Goes past a field of any number; groups are not known.
    fn skip_field(&mut self) -> Option<()> {
        let tag = self.varint()?;
        if tag >> 3 == 0 {
            return None;
        }
        match tag & 7 {
            0 => self.varint().map(drop),
            1 => self.take(8).map(drop),
            2 if tag >> 3 > 1 => self.delimited().map(drop),
            5 => self.take(4).map(drop),
            _ => None,
        }
    }
}

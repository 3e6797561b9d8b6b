//! Reads protobuf messages in place, one field after another.

/// The deepest nesting of groups.
const DEEPEST: usize = 100;

/// The rest of a message.
pub(crate) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
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

    /// Skips this tag, if it is the next.
    pub fn tag(&mut self, tag: u8) -> Option<()> {
        match self.0.split_first() {
            Some((&next, rest)) if next == tag => {
                self.0 = rest;
                Some(())
            }
            _ => None,
        }
    }

    /// Reads a length and that many bytes.
    pub fn delimited(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.take(length)
    }

    /// The bytes of field `number`, if it is the next and complete. Otherwise the position does not change.
    pub fn next_delimited(&mut self, number: u8) -> Option<&'a [u8]> {
        let mut ahead = Cursor(self.0);
        ahead.tag(number << 3 | 2)?;
        let bytes = ahead.delimited()?;
        self.0 = ahead.0;
        Some(bytes)
    }

    /// Skips a field of any number. Groups are not supported.
    pub fn skip_field(&mut self) -> Option<()> {
        match self.varint()? {
            tag if tag >> 3 == 0 || tag == 0x0a => None,
            tag => self.skip(tag & 7),
        }
    }

    /// Skips a value of this wire type.
    pub fn skip(&mut self, wire: u64) -> Option<()> {
        match wire {
            0 => self.varint().map(drop),
            1 => self.take(8).map(drop),
            2 => self.delimited().map(drop),
            5 => self.take(4).map(drop),
            _ => None,
        }
    }

    /// The content of a group, which may contain groups.
    pub fn group(&mut self, number: u64) -> Option<&'a [u8]> {
        let (whole, mut open) = (self.0, vec![number]);
        loop {
            let before = self.0.len();
            let tag = self.varint()?;
            match (tag >> 3, tag & 7) {
                (0, _) => return None,
                (number, 3) if open.len() < DEEPEST => open.push(number),
                (number, 4) => {
                    if open.pop() != Some(number) {
                        return None;
                    }
                    if open.is_empty() {
                        return Some(&whole[..whole.len() - before]);
                    }
                }
                (_, wire) => self.skip(wire)?,
            }
        }
    }
}

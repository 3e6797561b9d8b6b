//! Splits rows of comma-separated values into fields.

use status::{Result, invalid};
use tensor::Bytes;

/// How fields are separated.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    /// The byte between two fields.
    pub delimiter: u8,
    /// True if fields may be in quotes.
    pub quotes: bool,
}

/// Bytes of a file, from the beginning of a row.
pub(crate) struct Scan<'a> {
    /// The bytes; fields are slices of them.
    pub data: &'a Bytes,
    /// True if the file ends behind them.
    pub is_last: bool,
    /// How fields are separated.
    pub layout: Layout,
}

/// A field and what follows it.
struct Field {
    text: Result<Bytes>,
    /// Where the next field or row begins.
    next: usize,
    ends_row: bool,
}

impl Scan<'_> {
    /// Passes on the fields of the first row. Returns its length with the line break, or none if the bytes end before the
    /// row does.
    pub fn record(&self, mut push: impl FnMut(Result<Bytes>)) -> Option<usize> {
        let mut at = 0;
        loop {
            let field = match self.layout.quotes && self.data.get(at) == Some(&b'"') {
                true => self.quoted(at)?,
                false => self.plain(at)?,
            };
            push(field.text);
            at = field.next;
            if field.ends_row {
                return Some(at);
            }
        }
    }

    fn plain(&self, begin: usize) -> Option<Field> {
        let rest = self.data.get(begin..)?;
        let length = memchr::memchr3(self.layout.delimiter, b'\n', b'\r', rest);
        if length.is_none() && !self.is_last {
            return None;
        }
        let end = length.map_or(self.data.len(), |length| begin + length);
        let (next, ends_row) = self.behind(end)?;
        let text = match self.layout.quotes && memchr::memchr(b'"', &self.data[begin..end]).is_some() {
            true => Err(invalid!("Unquoted fields cannot have quotes inside")),
            false => Ok(self.data.slice(begin..end)),
        };
        Some(Field { text, next, ends_row })
    }

    fn quoted(&self, begin: usize) -> Option<Field> {
        let (mut at, mut is_wrong) = (begin + 1, false);
        loop {
            let Some(length) = memchr::memchr(b'"', &self.data[at..]) else {
                let error = invalid!("Reached end of file without closing quoted field in record");
                return self.is_last.then(|| Field { text: Err(error), next: self.data.len(), ends_row: true });
            };
            at += length + 1;
            match self.data.get(at) {
                None if !self.is_last => return None,
                Some(b'"') => at += 1,
                Some(&byte) if byte != self.layout.delimiter && byte != b'\n' && byte != b'\r' => {
                    is_wrong = true;
                    at += 1;
                }
                _ => break,
            }
        }
        let (next, ends_row) = self.behind(at)?;
        let text = match is_wrong {
            true => Err(invalid!("Quote inside a string has to be escaped by another quote")),
            false => Ok(self.unquoted(begin, at)),
        };
        Some(Field { text, next, ends_row })
    }

    /// What follows a field that ends before `end`: where the next one begins, and whether it is in another row.
    fn behind(&self, end: usize) -> Option<(usize, bool)> {
        match self.data.get(end) {
            None => Some((end, true)),
            Some(&byte) if byte == self.layout.delimiter => Some((end + 1, false)),
            Some(b'\r') => match self.data.get(end + 1) {
                Some(b'\n') => Some((end + 2, true)),
                None if !self.is_last => None,
                _ => Some((end + 1, true)),
            },
            Some(_) => Some((end + 1, true)),
        }
    }

    /// A field without the quotes around it, and with one quote for each pair inside.
    fn unquoted(&self, begin: usize, end: usize) -> Bytes {
        let inner = self.data.slice(begin + 1..end - 1);
        if memchr::memchr(b'"', &inner).is_none() {
            return inner;
        }
        let mut is_second = false;
        let keep = |&byte: &u8| {
            is_second = byte == b'"' && !is_second;
            !is_second || byte != b'"'
        };
        inner.iter().copied().filter(keep).collect()
    }
}

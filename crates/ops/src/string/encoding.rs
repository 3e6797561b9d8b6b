//! Character encodings.

/// An encoding of characters as bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Encoding {
    /// One to four bytes.
    Utf8,
    /// Two or four bytes.
    Utf16 { big: bool },
    /// UTF-32, four bytes for each character.
    Utf32 { big: bool },
    /// One byte, for the first 128 characters.
    Ascii,
    /// One byte, for the first 256 characters.
    Latin1,
}

/// The result of decoding at a position of a string.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found {
    /// A valid character.
    Character(char),
    /// Bytes that are none.
    Malformed,
}

impl Encoding {
    /// The encoding with this name; punctuation and case do not matter.
    pub fn named(name: &str) -> Option<Encoding> {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        Some(match plain.to_ascii_lowercase().as_str() {
            "utf8" => Encoding::Utf8,
            "utf16" | "utf16be" => Encoding::Utf16 { big: true },
            "utf16le" => Encoding::Utf16 { big: false },
            "utf32" | "utf32be" => Encoding::Utf32 { big: true },
            "utf32le" => Encoding::Utf32 { big: false },
            "ascii" | "usascii" => Encoding::Ascii,
            "latin1" | "iso88591" | "88591" => Encoding::Latin1,
            _ => return None,
        })
    }

    /// The characters of a string, each with the number of bytes it takes.
    pub fn decode(self, bytes: &[u8]) -> Vec<(Found, usize)> {
        match self {
            Encoding::Utf8 => utf8(bytes),
            Encoding::Utf16 { big } => utf16(bytes, big),
            Encoding::Utf32 { big } => bytes.chunks(4).map(|unit| (code_point(unit, big), unit.len())).collect(),
            Encoding::Ascii => single(bytes, 0x7f),
            Encoding::Latin1 => single(bytes, 0xff),
        }
    }

    /// Writes a character; one that the encoding lacks becomes a question mark.
    pub fn encode(self, c: char, out: &mut Vec<u8>) {
        match self {
            Encoding::Utf8 => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Encoding::Utf16 { big } => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.extend(if big { unit.to_be_bytes() } else { unit.to_le_bytes() });
                }
            }
            Encoding::Utf32 { big } => {
                let code = c as u32;
                out.extend(if big { code.to_be_bytes() } else { code.to_le_bytes() });
            }
            Encoding::Ascii => out.push(u8::try_from(c as u32).ok().filter(u8::is_ascii).unwrap_or(b'?')),
            Encoding::Latin1 => out.push(u8::try_from(c as u32).unwrap_or(b'?')),
        }
    }
}

fn single(bytes: &[u8], highest: u8) -> Vec<(Found, usize)> {
    let found = |&byte: &u8| match byte <= highest {
        true => Found::Character(byte.into()),
        false => Found::Malformed,
    };
    bytes.iter().map(|byte| (found(byte), 1)).collect()
}

/// Each longest start of a character that is not one counts once.
fn utf8(bytes: &[u8]) -> Vec<(Found, usize)> {
    let mut found = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        found.extend(chunk.valid().chars().map(|c| (Found::Character(c), c.len_utf8())));
        if !chunk.invalid().is_empty() {
            found.push((Found::Malformed, chunk.invalid().len()));
        }
    }
    found
}

fn utf16(bytes: &[u8], big: bool) -> Vec<(Found, usize)> {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|&pair| if big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) });
    let mut found: Vec<(Found, usize)> = char::decode_utf16(units)
        .map(|unit| unit.map_or((Found::Malformed, 2), |c| (Found::Character(c), 2 * c.len_utf16())))
        .collect();
    if !odd.is_empty() {
        found.push((Found::Malformed, 1));
    }
    found
}

fn code_point(unit: &[u8], big: bool) -> Found {
    let Ok(unit) = <[u8; 4]>::try_from(unit) else { return Found::Malformed };
    let code = if big { u32::from_be_bytes(unit) } else { u32::from_le_bytes(unit) };
    char::from_u32(code).map_or(Found::Malformed, Found::Character)
}

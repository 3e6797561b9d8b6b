//! Splitting lines of case files: words, lists, quoted strings.

use status::{Result, invalid};

/// The words of a line: split at spaces outside quotes, brackets and parentheses.
pub fn words(text: &str) -> Vec<&str> {
    split(text, ' ').into_iter().filter(|word| !word.is_empty()).collect()
}

/// The items of a list: split at commas outside quotes, brackets and parentheses.
pub fn items(text: &str) -> Vec<&str> {
    split(text, ',').into_iter().map(str::trim).filter(|item| !item.is_empty()).collect()
}

fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut depth, mut quoted, mut escaped, mut start) = (Vec::new(), 0, false, false, 0);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth -= 1,
            c if c == separator && depth == 0 && !quoted => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The text between `open` and the last character, if `text` has the form `name(…)`.
pub fn inside<'a>(text: &'a str, open: &str, close: char) -> Option<&'a str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

/// The bytes of a quoted string, with `\n`, `\t`, `\r`, `\"`, `\\` and `\xNN`.
pub fn unquote(text: &str) -> Result<Vec<u8>> {
    let inner = inside(text, "\"", '"').ok_or_else(|| invalid!("{text} is not a quoted string"))?;
    let bad = || invalid!("{text} has an unknown escape");
    let (mut bytes, mut rest) = (Vec::new(), inner);
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let escape = rest[at + 1..].chars().next().ok_or_else(bad)?;
        rest = &rest[at + 1 + escape.len_utf8()..];
        match escape {
            'n' => bytes.push(b'\n'),
            't' => bytes.push(b'\t'),
            'r' => bytes.push(b'\r'),
            '"' | '\\' => bytes.push(escape as u8),
            'x' => {
                let digits = rest.get(..2).ok_or_else(bad)?;
                bytes.push(u8::from_str_radix(digits, 16).map_err(|_| bad())?);
                rest = &rest[2..];
            }
            _ => return Err(bad()),
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

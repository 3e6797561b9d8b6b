//! Messages in protobuf's text format: `.pbtxt` files and checkpoint state files.

use crate::wire;
use bytes::Bytes;
use status::{Result, invalid};

/// The deepest nesting of messages, which equals that of the binary format.
const MAX_DEPTH: usize = 100;

/// Converts a message from text to the binary format. `message` is its full name, such as `tensorflow.GraphDef`.
pub fn text_to_binary(message: &str, text: &str) -> Result<Bytes> {
    if depth(text) > MAX_DEPTH {
        return Err(invalid!("{message} as text nests deeper than {MAX_DEPTH}"));
    }
    wire::parse(message, text)
}

/// Converts a message to text, one field per line.
pub fn binary_to_text(message: &str, bytes: &[u8]) -> Result<String> {
    wire::print(message, bytes)
}

/// The deepest nesting of braces and brackets in a text, outside of strings and comments.
fn depth(text: &str) -> usize {
    let (mut now, mut most) = (0usize, 0);
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'{' | b'<' | b'[' => now += 1,
            b'}' | b'>' | b']' => now = now.saturating_sub(1),
            b'#' => drop(rest.find(|&byte| byte == b'\n')),
            b'"' | b'\'' => skip_string(byte, &mut rest),
            _ => {}
        }
        most = most.max(now);
    }
    most
}

fn skip_string(quote: u8, rest: &mut std::str::Bytes) {
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => drop(rest.next()),
            b'\n' => return, // an unterminated string, which the parser reports
            byte if byte == quote => return,
            _ => {}
        }
    }
}

//! Reads a message with tensors as its bytes arrive: the contents of large tensors are written directly into their
//! buffers, and the rest is decoded as a message without them.

use prost::Message;
use status::{Error, Result, exhausted, unimplemented_op};
use tensor::Buffer;

/// The longest message TensorFlow's protocol buffers can hold.
const MAX_MESSAGE: usize = i32::MAX as usize;
/// Before every message: a byte for its compression, four for its length.
const PREFIX: usize = 5;
/// The most bytes of a tag or a length.
const LONGEST_VARINT: usize = 10;
/// The wire types of protocol buffers.
const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const COUNTED: u64 = 2;
const FOUR_BYTES: u64 = 5;

/// Where a message has its tensors.
pub(crate) struct Layout {
    /// The field numbers on the path from the message to the contents of its tensors.
    pub path: &'static [u64],
    /// Smaller contents stay in the message.
    pub separate_from: usize,
    /// The error for a malformed message.
    pub broken: fn(&str) -> Error,
}

/// A message and, separate from it, the contents of its large tensors.
pub(crate) struct SplitMessage<M> {
    pub message: M,
    /// The contents, with the index of their tensor in the message's list.
    contents: Vec<(usize, Buffer)>,
}

impl<M> SplitMessage<M> {
    /// The message, and a function that returns the content of each tensor once.
    pub fn open(self) -> (M, impl FnMut(usize) -> Option<Buffer>) {
        let mut contents = self.contents;
        let find = move |tensor: usize| {
            let place = contents.iter().position(|(owner, _)| *owner == tensor)?;
            Some(contents.swap_remove(place).1)
        };
        (self.message, find)
    }

    /// The message and the last content, for messages with one tensor.
    pub fn open_one(mut self) -> (M, Option<Buffer>) {
        let content = self.contents.pop().map(|(_, content)| content);
        (self.message, content)
    }
}

/// A message that is being received.
pub(crate) struct MessageReader {
    layout: &'static Layout,
    prefix: Vec<u8>,
    /// The message, and the nested messages that have begun.
    levels: Vec<Level>,
    /// The part of a tag and its length that has arrived.
    header: Vec<u8>,
    state: State,
    tensors: usize,
    contents: Vec<(usize, Buffer)>,
}

struct Level {
    /// How many bytes are missing.
    left: usize,
    /// The bytes that stay in the message.
    kept: Vec<u8>,
}

enum State {
    /// At the header of a field.
    Header,
    /// This many bytes stay in the message.
    Message(usize),
    /// A content: its buffer, and how much of it is filled.
    Content(Buffer, usize),
}

impl MessageReader {
    /// A message of which nothing has arrived.
    pub fn new(layout: &'static Layout) -> MessageReader {
        MessageReader {
            layout,
            prefix: Vec::new(),
            levels: Vec::new(),
            header: Vec::new(),
            state: State::Header,
            tensors: 0,
            contents: Vec::new(),
        }
    }

    /// Reads the next bytes; an error if some of them follow the message.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        match self.take(bytes)? {
            [] => Ok(()),
            _ => Err((self.layout.broken)("it has more than one message")),
        }
    }

    /// Reads the next bytes of the message; returns those that follow it.
    pub fn take<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let mut bytes = self.take_prefix(bytes)?;
        while !bytes.is_empty() && !self.is_complete() {
            let used = match &mut self.state {
                State::Message(left) => {
                    let now = bytes.len().min(*left);
                    *left -= now;
                    let done = *left == 0;
                    self.keep(&bytes[..now]);
                    if done {
                        self.state = State::Header;
                    }
                    now
                }
                State::Content(buffer, filled) => {
                    let now = bytes.len().min(buffer.len() - *filled);
                    let place = buffer.bytes_mut().ok_or_else(no_room)?;
                    place[*filled..*filled + now].copy_from_slice(&bytes[..now]);
                    *filled += now;
                    if *filled == place.len() {
                        self.store();
                    }
                    now
                }
                State::Header => self.take_header(bytes)?,
            };
            bytes = &bytes[used..];
            self.close_levels();
        }
        Ok(bytes)
    }

    fn is_complete(&self) -> bool {
        let done = matches!(self.levels[..], [Level { left: 0, .. }]);
        done && self.header.is_empty() && matches!(self.state, State::Header)
    }

    /// The message, when all its bytes have arrived.
    pub fn finish<M: Message + Default>(mut self) -> Result<SplitMessage<M>> {
        let broken = self.layout.broken;
        if !self.is_complete() {
            return Err(broken("it ended early"));
        }
        let kept = std::mem::take(&mut self.levels[0].kept);
        let message = M::decode(&kept[..]).map_err(|error| broken(&error.to_string()))?;
        Ok(SplitMessage { message, contents: self.contents })
    }

    /// Reads the rest of the prefix; returns the bytes that follow it.
    fn take_prefix<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let (now, rest) = bytes.split_at(bytes.len().min(PREFIX - self.prefix.len()));
        self.prefix.extend_from_slice(now);
        if let [compressed, a, b, c, d] = self.prefix[..]
            && self.levels.is_empty()
        {
            let left = u32::from_be_bytes([a, b, c, d]) as usize;
            match compressed {
                0 if left <= MAX_MESSAGE => self.levels.push(Level { left, kept: Vec::new() }),
                0 => return Err(exhausted!("A message of {left} bytes is longer than 2 GiB")),
                _ => return Err(unimplemented_op!("Compressed messages are not supported")),
            }
        }
        Ok(rest)
    }

    /// Reads bytes until the header of a field is complete; returns how many.
    fn take_header(&mut self, bytes: &[u8]) -> Result<usize> {
        for (place, &byte) in bytes.iter().enumerate() {
            self.header.push(byte);
            if let Some(begun) = Header::read(&self.header).map_err(self.layout.broken)? {
                self.begin(begun)?;
                return Ok(place + 1);
            }
        }
        Ok(bytes.len())
    }

    /// Begins a field after its header is complete.
    fn begin(&mut self, field: Header) -> Result<()> {
        let Layout { path, separate_from, broken } = self.layout;
        let depth = self.levels.len();
        let level = self.levels.last_mut().ok_or_else(|| broken("it has more than one message"))?;
        let whole = self.header.len().checked_add(field.follows).filter(|whole| *whole <= level.left);
        level.left -= whole.ok_or_else(|| broken("a field is longer than its message"))?;
        let on_path = field.kind == COUNTED && path.get(depth - 1) == Some(&field.number);
        let is_content = depth == path.len();
        if on_path && !is_content {
            self.tensors += usize::from(depth == 1);
            self.levels.push(Level { left: field.follows, kept: Vec::new() });
            self.header.clear();
            return Ok(());
        }
        if on_path {
            let owner = self.tensors - 1;
            self.contents.retain(|(other, _)| *other != owner);
            if field.follows >= *separate_from {
                self.state = State::Content(Buffer::scratch(field.follows).ok_or_else(no_room)?, 0);
                self.header.clear();
                return Ok(());
            }
        }
        let header = std::mem::take(&mut self.header);
        self.keep(&header);
        self.state = if field.follows > 0 { State::Message(field.follows) } else { State::Header };
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(level) = self.levels.last_mut() {
            level.kept.extend_from_slice(bytes);
        }
    }

    /// Stores a complete content.
    fn store(&mut self) {
        if let State::Content(buffer, _) = std::mem::replace(&mut self.state, State::Header) {
            self.contents.push((self.tensors - 1, buffer));
        }
    }

    /// Appends complete nested messages to the messages that contain them.
    fn close_levels(&mut self) {
        while self.levels.len() > 1
            && matches!(self.state, State::Header)
            && self.header.is_empty()
            && self.levels.last().is_some_and(|level| level.left == 0)
            && let Some(inner) = self.levels.pop()
            && let Some(&number) = self.layout.path.get(self.levels.len() - 1)
            && let Some(outer) = self.levels.last_mut()
        {
            prost::encoding::encode_varint((number << 3) | COUNTED, &mut outer.kept);
            prost::encoding::encode_varint(inner.kept.len() as u64, &mut outer.kept);
            outer.kept.extend_from_slice(&inner.kept);
        }
    }
}

/// The start of a field.
struct Header {
    number: u64,
    kind: u64,
    /// Bytes of the value that follow.
    follows: usize,
}

impl Header {
    /// Reads a header; `None` if it is not complete.
    fn read(bytes: &[u8]) -> Read<Option<Header>> {
        let Some((tag, rest)) = varint(bytes)? else { return Ok(None) };
        let (number, kind) = (tag >> 3, tag & 7);
        let follows = match kind {
            EIGHT_BYTES => 8,
            FOUR_BYTES => 4,
            VARINT | COUNTED => match varint(rest)? {
                None => return Ok(None),
                Some(_) if kind == VARINT => 0,
                Some((length, _)) => usize::try_from(length).map_err(|_| "a field is longer than its message")?,
            },
            _ => return Err("a field has an unknown wire type"),
        };
        Ok(Some(Header { number, kind, follows }))
    }
}

/// Reads a number; returns it with the bytes that follow, or `None` if it is not complete.
fn varint(bytes: &[u8]) -> Read<Option<(u64, &[u8])>> {
    let mut value = 0u64;
    for (place, &byte) in bytes.iter().enumerate() {
        if place == LONGEST_VARINT {
            return Err("a number is longer than ten bytes");
        }
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Ok(Some((value, &bytes[place + 1..])));
        }
    }
    Ok(None)
}

/// A value, or what is wrong with the bytes.
type Read<T> = std::result::Result<T, &'static str>;

fn no_room() -> Error {
    exhausted!("OOM when receiving the tensors of a message")
}

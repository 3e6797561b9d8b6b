//! A message under way: the contents of its large tensors go straight to their final place, the rest is kept as a
//! message without them.

use prost::Message;
use status::{Error, Result, exhausted, unimplemented_op};
use tensor::Buffer;

/// The longest message TensorFlow's protocol buffers can hold.
const MAX_MESSAGE: usize = i32::MAX as usize;
/// Before every message: a byte for its compression, four for its length.
const PREFIX: usize = 5;
/// A tag or a length.
const LONGEST_VARINT: usize = 10;
/// Wire types: what follows a tag.
const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const COUNTED: u64 = 2;
const FOUR_BYTES: u64 = 5;

/// What is known of a message before it comes.
pub(crate) struct Form {
    /// The fields that lead from the message to its tensors' contents: the message's, then the tensors' own.
    pub path: &'static [u64],
    /// Contents below this size are not worth a block of their own.
    pub apart_from: usize,
    /// The error when it makes no sense.
    pub broken: fn(&str) -> Error,
}

/// A message whose large contents were taken out.
pub(crate) struct Apart<M> {
    pub message: M,
    /// The contents by the place of their tensor in the message's list.
    contents: Vec<(usize, Buffer)>,
}

impl<M> Apart<M> {
    /// The message alone, and a function that gives each tensor's content, once.
    pub fn open(self) -> (M, impl FnMut(usize) -> Option<Buffer>) {
        let mut contents = self.contents;
        let find = move |tensor: usize| {
            let place = contents.iter().position(|(owner, _)| *owner == tensor)?;
            Some(contents.swap_remove(place).1)
        };
        (self.message, find)
    }

    /// The message and the content that came last, for messages of one tensor.
    pub fn open_one(mut self) -> (M, Option<Buffer>) {
        let content = self.contents.pop().map(|(_, content)| content);
        (self.message, content)
    }
}

/// A message as it comes in.
pub(crate) struct Splitter {
    form: &'static Form,
    prefix: Vec<u8>,
    /// The message and the ones inside it that have begun.
    levels: Vec<Level>,
    /// A tag and what follows it, as far as they are here.
    header: Vec<u8>,
    state: State,
    tensors: usize,
    contents: Vec<(usize, Buffer)>,
}

struct Level {
    /// Bytes still to come.
    left: usize,
    /// What stays in the message.
    kept: Vec<u8>,
}

enum State {
    /// At a field, or inside its header.
    Header,
    /// So many bytes stay in the message.
    Keep(usize),
    /// A content: its block, and how much of it is filled.
    Apart(Buffer, usize),
}

impl Splitter {
    /// Nothing is here yet.
    pub fn new(form: &'static Form) -> Splitter {
        Splitter {
            form,
            prefix: Vec::new(),
            levels: Vec::new(),
            header: Vec::new(),
            state: State::Header,
            tensors: 0,
            contents: Vec::new(),
        }
    }

    /// Takes the next bytes, of which none may follow the message.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        match self.take(bytes)? {
            [] => Ok(()),
            _ => Err((self.form.broken)("more than one message came")),
        }
    }

    /// Takes the next bytes of the message; gives back what follows it.
    pub fn take<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let mut bytes = self.take_prefix(bytes)?;
        while !bytes.is_empty() && !self.is_complete() {
            let used = match &mut self.state {
                State::Keep(left) => {
                    let now = bytes.len().min(*left);
                    *left -= now;
                    let done = *left == 0;
                    self.keep(&bytes[..now]);
                    if done {
                        self.state = State::Header;
                    }
                    now
                }
                State::Apart(buffer, filled) => {
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

    /// The message, when all bytes are here.
    pub fn finish<M: Message + Default>(mut self) -> Result<Apart<M>> {
        let broken = self.form.broken;
        if !self.is_complete() {
            return Err(broken("it ended early"));
        }
        let kept = std::mem::take(&mut self.levels[0].kept);
        let message = M::decode(&kept[..]).map_err(|error| broken(&error.to_string()))?;
        Ok(Apart { message, contents: self.contents })
    }

    /// Takes what is missing of the prefix; gives back the rest.
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
                _ => return Err(unimplemented_op!("Compressed messages are not taken")),
            }
        }
        Ok(rest)
    }

    /// Takes bytes until the header of a field is complete; says how many.
    fn take_header(&mut self, bytes: &[u8]) -> Result<usize> {
        for (place, &byte) in bytes.iter().enumerate() {
            self.header.push(byte);
            if let Some(begun) = Header::read(&self.header).map_err(self.form.broken)? {
                self.begin(begun)?;
                return Ok(place + 1);
            }
        }
        Ok(bytes.len())
    }

    /// The header of a field is complete: its value follows.
    fn begin(&mut self, field: Header) -> Result<()> {
        let Form { path, apart_from, broken } = self.form;
        let depth = self.levels.len();
        let level = self.levels.last_mut().ok_or_else(|| broken("more than one message came"))?;
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
            if field.follows >= *apart_from {
                self.state = State::Apart(Buffer::scratch(field.follows).ok_or_else(no_room)?, 0);
                self.header.clear();
                return Ok(());
            }
        }
        let header = std::mem::take(&mut self.header);
        self.keep(&header);
        self.state = if field.follows > 0 { State::Keep(field.follows) } else { State::Header };
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(level) = self.levels.last_mut() {
            level.kept.extend_from_slice(bytes);
        }
    }

    /// A content is complete.
    fn store(&mut self) {
        if let State::Apart(buffer, _) = std::mem::replace(&mut self.state, State::Header) {
            self.contents.push((self.tensors - 1, buffer));
        }
    }

    /// Inner messages that are complete become fields of the ones around them.
    fn close_levels(&mut self) {
        while self.levels.len() > 1
            && matches!(self.state, State::Header)
            && self.header.is_empty()
            && self.levels.last().is_some_and(|level| level.left == 0)
            && let Some(inner) = self.levels.pop()
            && let Some(&number) = self.form.path.get(self.levels.len() - 1)
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
    /// Reads a header; none if it is not complete.
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

/// Reads a number and gives back what follows it; none if it is not complete.
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

/// What was read, or what is wrong with it.
type Read<T> = std::result::Result<T, &'static str>;

fn no_room() -> Error {
    exhausted!("OOM when receiving the tensors of a message")
}

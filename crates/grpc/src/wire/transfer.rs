//! RecvTensor's answer as a few pieces that share the tensor's bytes, and back into one aligned block.
//!
//! On the wire it is TensorFlow's RecvTensorResponse. A tensor that no such message can hold travels between
//! two tasks of ours as a message without content, followed by the content as raw messages of `CHUNK` bytes.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use proto::tensorflow as pb;
use status::{Error, Result, exhausted, internal};
use tensor::wire::{decode_shape, decode_tensor, encode_shape, encode_tensor};
use tensor::{Buffer, DType, Tensor};

/// The longest message TensorFlow's protocol buffers can hold.
pub(super) const MAX_MESSAGE: usize = i32::MAX as usize;
/// What TensorFlow calls the limit when it refuses a tensor.
const TENSORFLOW_LIMIT: usize = 1 << 31;
/// Contents below this size are not worth a piece of their own.
pub(crate) const SHARE_FROM: usize = 1024;
/// Raw content of one message, for tensors that need several.
const CHUNK: usize = 1 << 30;
/// Type, shape and the small fields of an answer fit into this.
pub(super) const MAX_HEAD: usize = 16 << 10;
/// Before every message: a byte for its compression, four for its length.
pub(super) const PREFIX: usize = 5;
/// `RecvTensorResponse.tensor` and `TensorProto.tensor_content`, as tags with a length.
const TENSOR_TAG: u8 = (1 << 3) | 2;
const CONTENT_TAG: u8 = (4 << 3) | 2;

/// An answer, ready to be sent.
pub(crate) struct Outgoing {
    /// The bytes, in order, each message with its prefix.
    pub pieces: Vec<Bytes>,
    /// Bytes of raw content that follow the first message, if they do.
    pub raw: Option<usize>,
}

/// Encodes an answer. `raw_allowed` says that the asking task understands raw content.
pub(crate) fn encode(tensor: &Tensor, is_dead: bool, sent_micros: i64, raw_allowed: bool) -> Result<Outgoing> {
    encode_within(tensor, is_dead, sent_micros, raw_allowed.then_some(CHUNK), MAX_MESSAGE)
}

/// The same with other limits: tests have no room for tensors above the real ones.
pub(crate) fn encode_within(
    tensor: &Tensor,
    is_dead: bool,
    send_start_micros: i64,
    chunk: Option<usize>,
    limit: usize,
) -> Result<Outgoing> {
    let mut answer = pb::RecvTensorResponse { is_dead, send_start_micros, ..Default::default() };
    let buffer = tensor.buffer().filter(|buffer| buffer.len() >= SHARE_FROM);
    let Some(content) = buffer.map(Buffer::to_bytes) else {
        answer.tensor = Some(encode_tensor(tensor)?);
        return Ok(Outgoing { pieces: vec![message(&answer.encode_to_vec())?], raw: None });
    };
    let skeleton = pb::TensorProto {
        dtype: tensor.dtype().number(),
        tensor_shape: Some(encode_shape(tensor.shape())),
        ..pb::TensorProto::default()
    };
    let head = head(&answer, &skeleton.encode_to_vec(), content.len())?;
    if head.len() + content.len() <= limit {
        let mut first = prefix(head.len() + content.len())?;
        first.put_slice(&head);
        return Ok(Outgoing { pieces: vec![first.freeze(), content], raw: None });
    }
    let Some(chunk) = chunk else { return Err(too_large(content.len())) };
    answer.tensor = Some(skeleton);
    let raw = Some(content.len());
    Ok(Outgoing { pieces: chunks(message(&answer.encode_to_vec())?, content, chunk)?, raw })
}

pub(super) fn too_large(bytes: usize) -> Error {
    let exceeded = bytes.saturating_sub(TENSORFLOW_LIMIT);
    internal!("Cannot encode a Tensor that exceeds the 2GB protobuf limit. Exceeded bytes: {exceeded}")
}

/// Everything before the content: other fields first, so that the content ends the message.
pub(super) fn head(answer: &pb::RecvTensorResponse, skeleton: &[u8], content: usize) -> Result<Vec<u8>> {
    let bad = |error| internal!("{error}");
    let tensor = skeleton.len() + 1 + prost::length_delimiter_len(content) + content;
    let mut head = answer.encode_to_vec();
    head.push(TENSOR_TAG);
    prost::encode_length_delimiter(tensor, &mut head).map_err(bad)?;
    head.extend_from_slice(skeleton);
    head.push(CONTENT_TAG);
    prost::encode_length_delimiter(content, &mut head).map_err(bad)?;
    Ok(head)
}

/// The start of a message of this length, with room for a small head.
pub(crate) fn prefix(length: usize) -> Result<BytesMut> {
    let length = u32::try_from(length).map_err(|_| too_large(length))?;
    let mut bytes = BytesMut::with_capacity(PREFIX + 128);
    bytes.put_u8(0);
    bytes.put_u32(length);
    Ok(bytes)
}

/// A message with its prefix.
pub(crate) fn message(bytes: &[u8]) -> Result<Bytes> {
    let mut framed = prefix(bytes.len())?;
    framed.put_slice(bytes);
    Ok(framed.freeze())
}

fn chunks(first: Bytes, mut content: Bytes, chunk: usize) -> Result<Vec<Bytes>> {
    let mut pieces = vec![first];
    while !content.is_empty() {
        let part = content.split_to(content.len().min(chunk));
        pieces.push(prefix(part.len())?.freeze());
        pieces.push(part);
    }
    Ok(pieces)
}

/// What another task answered.
#[derive(Debug)]
pub(crate) struct Received {
    pub tensor: Tensor,
    pub is_dead: bool,
    /// The other task keeps the tensor until it hears that it arrived.
    pub require_ack: bool,
}

/// An answer under way: bytes go in as they come, large contents straight to their final place.
pub(crate) struct Incoming {
    /// The first message up to its content; all of it if the content is small.
    head: Vec<u8>,
    /// The head is longer than any that ends in a large content.
    is_ordinary: bool,
    content: Option<Content>,
    /// The first message after its content.
    tail: Vec<u8>,
    raw: Option<Raw>,
}

/// The tensor's bytes, as far as they are here.
struct Content {
    buffer: Buffer,
    filled: usize,
}

/// Raw messages that hold the content.
struct Raw {
    prefix: Vec<u8>,
    /// What is still to come of the present one.
    left: usize,
}

impl Incoming {
    /// Nothing is here yet. `raw` is the size of the content that follows the first message, if it does.
    pub fn new(raw: Option<usize>) -> Result<Incoming> {
        let content = raw.map(Content::new).transpose()?;
        let raw = raw.map(|_| Raw { prefix: Vec::new(), left: 0 });
        Ok(Incoming { head: Vec::new(), is_ordinary: false, content, tail: Vec::new(), raw })
    }

    /// Takes the next bytes.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        if let Some(content) = self.content.as_mut().filter(|_| self.raw.is_none()) {
            bytes = content.fill(bytes)?;
            self.tail.extend_from_slice(bytes);
            return self.check_end();
        }
        if self.raw.is_some() {
            return self.push_raw(bytes);
        }
        self.head.extend_from_slice(bytes);
        self.check_prefix()?;
        if !self.is_ordinary {
            match find_content(self.head.get(PREFIX..).unwrap_or_default()) {
                Some(found) => self.begin(PREFIX + found.start, found.len)?,
                None => self.is_ordinary = self.head.len() >= MAX_HEAD,
            }
        }
        self.check_end()
    }

    /// The head is complete: what follows it goes to its final place.
    fn begin(&mut self, start: usize, len: usize) -> Result<()> {
        let length = self.length().unwrap_or(0);
        if start.checked_add(len).is_none_or(|end| end > PREFIX + length) {
            return Err(broken("its content is longer than the message"));
        }
        let early = self.head.split_off(start);
        let mut content = Content::new(len)?;
        self.tail.extend_from_slice(content.fill(&early)?);
        self.content = Some(content);
        Ok(())
    }

    fn push_raw(&mut self, mut bytes: &[u8]) -> Result<()> {
        let missing = match self.length() {
            Some(length) => PREFIX + length - self.head.len(),
            None => PREFIX - self.head.len(),
        };
        if missing > 0 {
            let (now, rest) = bytes.split_at(missing.min(bytes.len()));
            self.head.extend_from_slice(now);
            self.check_prefix()?;
            return if rest.is_empty() { Ok(()) } else { self.push_raw(rest) };
        }
        let (Some(raw), Some(content)) = (&mut self.raw, &mut self.content) else { return Ok(()) };
        while !bytes.is_empty() {
            bytes = raw.take(bytes, content)?;
        }
        Ok(())
    }

    /// The length of the first message, once its prefix is here.
    fn length(&self) -> Option<usize> {
        let bytes: [u8; 4] = self.head.get(1..PREFIX)?.try_into().ok()?;
        Some(u32::from_be_bytes(bytes) as usize)
    }

    fn check_prefix(&self) -> Result<()> {
        match (self.head.first(), self.length()) {
            (Some(1..), _) => Err(broken("it is compressed")),
            (_, Some(length)) if length > MAX_MESSAGE => Err(broken("it is longer than 2 GiB")),
            _ => Ok(()),
        }
    }

    /// One answer is one message.
    fn check_end(&self) -> Result<()> {
        let here = self.head.len() + self.content.as_ref().map_or(0, |content| content.buffer.len()) + self.tail.len();
        match self.length() {
            Some(length) if here > PREFIX + length => Err(broken("more than one message came")),
            _ => Ok(()),
        }
    }

    /// All bytes are here.
    pub fn finish(self) -> Result<Received> {
        let content_len = match (&self.content, &self.raw) {
            (Some(content), None) => content.buffer.len(),
            _ => 0,
        };
        let here = self.head.len() + content_len + self.tail.len();
        let whole = self.content.as_ref().is_none_or(|content| content.filled == content.buffer.len());
        if self.length().is_none_or(|length| here != PREFIX + length) || !whole {
            return Err(broken("it ended early"));
        }
        let bad = |error: prost::DecodeError| broken(&error.to_string());
        let message = &self.head[PREFIX..];
        let Some(content) = self.content else {
            return received(pb::RecvTensorResponse::decode(message).map_err(bad)?);
        };
        let mut answer = pb::RecvTensorResponse::default();
        match (self.raw, find_content(message)) {
            (None, Some(found)) => merge_around(&mut answer, message, &self.tail, &found).map_err(bad)?,
            _ => answer.merge(message).map_err(bad)?,
        }
        with_content(answer, content.buffer)
    }
}

impl Content {
    fn new(len: usize) -> Result<Content> {
        let buffer = Buffer::scratch(len).ok_or_else(|| exhausted!("OOM when receiving a tensor of {len} bytes"))?;
        Ok(Content { buffer, filled: 0 })
    }

    /// Takes what is missing; gives back the rest.
    fn fill<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let (now, rest) = bytes.split_at(bytes.len().min(self.buffer.len() - self.filled));
        if now.is_empty() {
            return Ok(rest);
        }
        let place = self.buffer.bytes_mut().ok_or_else(|| internal!("the block of a received tensor is shared"))?;
        place[self.filled..self.filled + now.len()].copy_from_slice(now);
        self.filled += now.len();
        Ok(rest)
    }
}

impl Raw {
    /// Takes a prefix, or content up to the end of the present message; gives back the rest.
    fn take<'a>(&mut self, bytes: &'a [u8], content: &mut Content) -> Result<&'a [u8]> {
        if self.left == 0 {
            let (now, rest) = bytes.split_at(bytes.len().min(PREFIX - self.prefix.len()));
            self.prefix.extend_from_slice(now);
            if let [_, a, b, c, d] = self.prefix[..] {
                self.left = u32::from_be_bytes([a, b, c, d]) as usize;
                self.prefix.clear();
            }
            return Ok(rest);
        }
        let (now, rest) = bytes.split_at(bytes.len().min(self.left));
        if !content.fill(now)?.is_empty() {
            return Err(broken("its content is longer than announced"));
        }
        self.left -= now.len();
        Ok(rest)
    }
}

pub(super) fn broken(what: &str) -> Error {
    internal!("The answer to RecvTensor cannot be read: {what}")
}

/// In place of a dead value that cannot be read: nobody will.
fn nothing() -> Tensor {
    Tensor::vector::<f32>(&[])
}

fn received(answer: pb::RecvTensorResponse) -> Result<Received> {
    let (is_dead, require_ack) = (answer.is_dead, answer.require_ack);
    let tensor = match decode_tensor(answer.tensor.unwrap_or_default()) {
        Err(_) if is_dead => nothing(),
        tensor => tensor?,
    };
    Ok(Received { tensor, is_dead, require_ack })
}

/// An answer whose content came separately.
fn with_content(mut answer: pb::RecvTensorResponse, buffer: Buffer) -> Result<Received> {
    let mut proto = answer.tensor.take().unwrap_or_default();
    let dtype = DType::from_number(proto.dtype).base();
    if dtype.is_plain() {
        let shape = decode_shape(proto.tensor_shape.as_ref())?;
        let tensor = match Tensor::from_buffer(dtype, shape, buffer) {
            Err(_) if answer.is_dead => nothing(),
            tensor => tensor?,
        };
        return Ok(Received { tensor, is_dead: answer.is_dead, require_ack: answer.require_ack });
    }
    proto.tensor_content = buffer.to_bytes();
    answer.tensor = Some(proto);
    received(answer)
}

/// Where the content of a message begins.
pub(super) struct Found {
    /// Where the tensor's tag stands, and where its fields begin.
    pub tag: usize,
    pub tensor: usize,
    /// Bytes of the tensor's fields.
    pub tensor_len: usize,
    /// Where the content's tag stands, where its bytes begin, and how many there are.
    pub content_tag: usize,
    pub start: usize,
    pub len: usize,
}

/// Looks for a large content in the beginning of an answer; none if it has not come yet or there is none.
pub(super) fn find_content(message: &[u8]) -> Option<Found> {
    let mut at = 0;
    loop {
        let tag = at;
        let field = varint(message, &mut at)?;
        if field == u64::from(TENSOR_TAG) {
            let tensor_len = usize::try_from(varint(message, &mut at)?).ok()?;
            let (tensor, end) = (at, at.checked_add(tensor_len)?);
            while at < end {
                let content_tag = at;
                let field = varint(message, &mut at)?;
                if field == u64::from(CONTENT_TAG) {
                    let len = usize::try_from(varint(message, &mut at)?).ok()?;
                    let inside = at.checked_add(len)? <= end && len >= SHARE_FROM;
                    return inside.then_some(Found { tag, tensor, tensor_len, content_tag, start: at, len });
                }
                skip(message, field, &mut at)?;
            }
        } else {
            skip(message, field, &mut at)?;
        }
    }
}

fn varint(message: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *message.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn skip(message: &[u8], field: u64, at: &mut usize) -> Option<()> {
    let bytes = match field & 7 {
        0 => return varint(message, at).map(drop),
        1 => 8,
        2 => usize::try_from(varint(message, at)?).ok()?,
        5 => 4,
        _ => return None,
    };
    *at = at.checked_add(bytes)?;
    Some(())
}

/// Reads the fields before and after the content. Messages that follow each other merge into one.
fn merge_around(
    answer: &mut pb::RecvTensorResponse,
    head: &[u8],
    tail: &[u8],
    found: &Found,
) -> std::result::Result<(), prost::DecodeError> {
    let after = found.tensor_len - (found.start - found.tensor) - found.len;
    let (rest_of_tensor, rest) = tail.split_at(after.min(tail.len()));
    let mut proto = pb::TensorProto::default();
    proto.merge(&head[found.tensor..found.content_tag])?;
    proto.merge(rest_of_tensor)?;
    answer.merge(&head[..found.tag])?;
    answer.merge(rest)?;
    answer.tensor = Some(proto);
    Ok(())
}

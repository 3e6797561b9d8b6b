//! Answers of RecvTensor whose content is streamed: finds the content in the bytes of an answer that is being received,
//! and encodes the beginning of an answer whose content follows.

use super::recv_tensor::{
    CONTENT_TAG, MAX_MESSAGE, PREFIX, SHARE_FROM, TENSOR_TAG, broken, head, message, prefix, too_large,
};
use bytes::{Buf, BufMut, Bytes};
use prost::Message;
use proto::tensorflow as pb;
use status::Result;
use std::collections::VecDeque;
use tensor::wire::{decode_shape, encode_shape};
use tensor::{DType, Shape};

/// Smaller contents are not streamed.
pub(crate) const STREAM_FROM: usize = 256 << 10;
/// The limit for what precedes the content: type, shape and the small fields of an answer.
const MAX_HEAD: usize = 16 << 10;

/// The beginning of an answer.
pub(crate) enum Head {
    /// More bytes are needed.
    Incomplete,
    /// The answer has no large content; it is read as a whole.
    Ordinary,
    /// A tensor with a large content.
    Large(LargeTensor),
}

/// A tensor whose content follows.
pub(crate) struct LargeTensor {
    pub dtype: DType,
    pub shape: Shape,
    /// The other task keeps the tensor until MarkRecvFinished is called.
    pub require_ack: bool,
    pub content: Content,
    /// How many of the parsed bytes precede the content.
    pub head: usize,
}

/// Parses the first bytes of an answer. `raw` is the size of the content if it follows the first message; contents below
/// `from` bytes are not large.
pub(crate) fn parse_head(bytes: &[u8], raw: Option<usize>, from: usize) -> Head {
    let Some(length) = bytes.get(1..PREFIX).and_then(|length| Some(u32::from_be_bytes(length.try_into().ok()?))) else {
        return Head::Incomplete;
    };
    let end = PREFIX + length as usize;
    let found = match raw {
        Some(size) if bytes.len() >= end => large_raw(&bytes[PREFIX..end], size),
        Some(_) if end > MAX_HEAD => None,
        Some(_) => return Head::Incomplete,
        None => match find_content(&bytes[PREFIX..]) {
            Some(found) => large(&bytes[PREFIX..], &found, length as usize),
            None if bytes.len() < end.min(MAX_HEAD) => return Head::Incomplete,
            None => None,
        },
    };
    found.filter(|large| bytes[0] == 0 && large.content.left >= from).map_or(Head::Ordinary, Head::Large)
}

/// An answer that contains the content.
fn large(message: &[u8], found: &Found, length: usize) -> Option<LargeTensor> {
    let answer = pb::RecvTensorResponse::decode(&message[..found.tag]).ok()?;
    let proto = pb::TensorProto::decode(&message[found.tensor..found.content_tag]).ok()?;
    let tail = length.checked_sub(found.start.checked_add(found.len)?)?;
    let content = Content { left: found.len, tail, raw: None };
    described(&answer, proto, content, PREFIX + found.start)
}

/// An answer that the content follows.
fn large_raw(message: &[u8], size: usize) -> Option<LargeTensor> {
    let mut answer = pb::RecvTensorResponse::decode(message).ok()?;
    let proto = answer.tensor.take()?;
    let content = Content { left: size, tail: 0, raw: Some((Vec::new(), 0)) };
    described(&answer, proto, content, PREFIX + message.len())
}

fn described(
    answer: &pb::RecvTensorResponse,
    proto: pb::TensorProto,
    content: Content,
    head: usize,
) -> Option<LargeTensor> {
    let dtype = DType::from_number(proto.dtype).base();
    // The bytes of bools must be checked, and a dead tensor is not read.
    if !dtype.is_plain() || dtype == DType::BOOL || answer.is_dead {
        return None;
    }
    let shape = decode_shape(proto.tensor_shape.as_ref()).ok()?;
    let size = shape.checked_elements().ok()?.checked_mul(dtype.size())?;
    (size == content.left).then_some(LargeTensor { dtype, shape, require_ack: answer.require_ack, content, head })
}

/// The part of a content that has not arrived.
pub(crate) struct Content {
    left: usize,
    /// Bytes after the content that belong to its message.
    tail: usize,
    /// For raw content: the received part of the current message's prefix, and how much of the message is missing.
    raw: Option<(Vec<u8>, usize)>,
}

impl Content {
    /// Consumes the next bytes of the answer and appends those that belong to the content to `content`.
    pub fn push(&mut self, mut bytes: Bytes, content: &mut VecDeque<Bytes>) -> Result<()> {
        while !bytes.is_empty() {
            let most = match &mut self.raw {
                Some((prefix, left)) if *left == 0 => {
                    let missing = (PREFIX - prefix.len()).min(bytes.len());
                    prefix.extend_from_slice(&bytes.split_to(missing));
                    if let [_, a, b, c, d] = prefix[..] {
                        *left = u32::from_be_bytes([a, b, c, d]) as usize;
                        prefix.clear();
                    }
                    continue;
                }
                Some((_, left)) => (*left).min(self.left),
                None => self.left,
            };
            if most == 0 {
                self.tail = self.tail.checked_sub(bytes.len()).ok_or_else(|| broken("it has more than one message"))?;
                return Ok(());
            }
            let piece = bytes.split_to(most.min(bytes.remaining()));
            self.left -= piece.len();
            if let Some((_, left)) = &mut self.raw {
                *left -= piece.len();
            }
            content.push_back(piece);
        }
        Ok(())
    }

    /// Whether all of the content has arrived.
    pub fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// Checks that the answer is complete.
    pub fn finish(&self) -> Result<()> {
        if self.left > 0 || self.tail > 0 { Err(broken("it ended early")) } else { Ok(()) }
    }
}

/// The beginning of an answer whose content follows in chunks.
pub(crate) struct Outgoing {
    pub first: Bytes,
    /// The size of the content if it is raw; then each chunk is a message of its own.
    pub raw: Option<usize>,
}

/// Encodes the beginning of an answer. `raw_allowed` says that the caller understands raw content.
pub(crate) fn encode(dtype: DType, shape: &Shape, sent_micros: i64, raw_allowed: bool) -> Result<Outgoing> {
    let size = shape.checked_elements()?.checked_mul(dtype.size()).ok_or_else(|| too_large(usize::MAX))?;
    let mut answer = pb::RecvTensorResponse { send_start_micros: sent_micros, ..Default::default() };
    let skeleton = pb::TensorProto {
        dtype: dtype.number(),
        tensor_shape: Some(encode_shape(shape)),
        ..pb::TensorProto::default()
    };
    let head = head(&answer, &skeleton.encode_to_vec(), size)?;
    if head.len() + size <= MAX_MESSAGE {
        let mut first = prefix(head.len() + size)?;
        first.put_slice(&head);
        return Ok(Outgoing { first: first.freeze(), raw: None });
    }
    if !raw_allowed {
        return Err(too_large(size));
    }
    answer.tensor = Some(skeleton);
    Ok(Outgoing { first: message(&answer.encode_to_vec())?, raw: Some(size) })
}

/// Where the content of a message begins.
struct Found {
    /// Where the tensor's tag is, and where its fields begin.
    tag: usize,
    tensor: usize,
    /// Where the content's tag is, where its bytes begin, and how many there are.
    content_tag: usize,
    start: usize,
    len: usize,
}

/// Finds a large content in the beginning of an answer; `None` if it has not arrived yet or there is none.
fn find_content(message: &[u8]) -> Option<Found> {
    let mut at = 0;
    loop {
        let tag = at;
        let field = varint(message, &mut at)?;
        if field == u64::from(TENSOR_TAG) {
            let fields = usize::try_from(varint(message, &mut at)?).ok()?;
            let (tensor, end) = (at, at.checked_add(fields)?);
            while at < end {
                let content_tag = at;
                let field = varint(message, &mut at)?;
                if field == u64::from(CONTENT_TAG) {
                    let len = usize::try_from(varint(message, &mut at)?).ok()?;
                    let inside = at.checked_add(len)? <= end && len >= SHARE_FROM;
                    return inside.then_some(Found { tag, tensor, content_tag, start: at, len });
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

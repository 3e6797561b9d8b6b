//! Encodes the answer of RecvTensor as a few pieces that share the tensor's bytes, and decodes it into one aligned buffer.
//!
//! On the wire it is TensorFlow's RecvTensorResponse. A tensor that is too large for such a message is sent between two
//! tasks of Flowgrid as a message without content, followed by the content as raw messages of `CHUNK` bytes.

use super::message_reader::{Layout, MessageReader};
use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use proto::tensorflow as pb;
use status::{Error, Result, exhausted, internal};
use tensor::wire::{decode_shape, decode_tensor, encode_shape, encode_tensor};
use tensor::{Buffer, DType, Tensor};

/// The longest message TensorFlow's protocol buffers can hold.
pub(super) const MAX_MESSAGE: usize = i32::MAX as usize;
/// The limit that TensorFlow's error names.
const TENSORFLOW_LIMIT: usize = 1 << 31;
/// Smaller contents are copied into the message.
pub(crate) const SHARE_FROM: usize = 1024;
/// The raw content of one message, for tensors that need several.
const CHUNK: usize = 1 << 30;
/// Before every message: a byte for its compression, four for its length.
pub(super) const PREFIX: usize = 5;
/// The tag of `RecvTensorResponse.tensor`, which a length follows.
pub(super) const TENSOR_TAG: u8 = (1 << 3) | 2;
/// The tag of `TensorProto.tensor_content`, which a length follows.
pub(super) const CONTENT_TAG: u8 = (4 << 3) | 2;

/// An answer, ready to be sent.
pub(crate) struct Outgoing {
    /// The bytes, in order, each message with its prefix.
    pub pieces: Vec<Bytes>,
    /// The size of the raw content that follows the first message, if there is any.
    pub raw: Option<usize>,
}

/// Encodes an answer. `raw_allowed` says that the caller understands raw content.
pub(crate) fn encode(tensor: &Tensor, is_dead: bool, sent_micros: i64, raw_allowed: bool) -> Result<Outgoing> {
    encode_within(tensor, is_dead, sent_micros, raw_allowed.then_some(CHUNK), MAX_MESSAGE)
}

/// Like `encode`, with other limits: tests have no memory for tensors above the real ones.
pub(crate) fn encode_within(
    tensor: &Tensor,
    is_dead: bool,
    send_start_micros: i64,
    chunk: Option<usize>,
    limit: usize,
) -> Result<Outgoing> {
    let mut answer = pb::RecvTensorResponse { is_dead, send_start_micros, ..Default::default() };
    let buffer = tensor.buffer().filter(|buffer| buffer.len() >= SHARE_FROM);
    let Some(content) = buffer else {
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
        let pieces = std::iter::once(first.freeze()).chain(content.to_pieces()).collect();
        return Ok(Outgoing { pieces, raw: None });
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

/// Everything before the content. The content is the last field, so that it can be sent as it is.
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

/// The prefix of a message of this length, with capacity for a small head.
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

fn chunks(first: Bytes, content: &Buffer, chunk: usize) -> Result<Vec<Bytes>> {
    let mut pieces = vec![first];
    for start in (0..content.len()).step_by(chunk) {
        let part = content.slice(start, chunk.min(content.len() - start));
        pieces.push(prefix(part.len())?.freeze());
        pieces.extend(part.to_pieces());
    }
    Ok(pieces)
}

/// The answer of another task.
#[derive(Debug)]
pub(crate) struct ReceivedTensor {
    pub tensor: Tensor,
    pub is_dead: bool,
    /// The other task keeps the tensor until MarkRecvFinished is called.
    pub require_ack: bool,
}

/// Where the answer has its content.
const ANSWER: Layout = Layout { path: &[1, 4], separate_from: SHARE_FROM, broken };

/// An answer that is being received: a large content is written directly into the tensor's buffer.
pub(crate) struct Incoming {
    first: MessageReader,
    raw: Option<Raw>,
}

/// Content that follows the first message, in messages of its own.
struct Raw {
    content: Buffer,
    filled: usize,
    prefix: Vec<u8>,
    /// How many bytes of the current message are missing.
    left: usize,
}

impl Incoming {
    /// An answer of which nothing has arrived. `raw` is the size of the content if it follows the first message.
    pub fn new(raw: Option<usize>) -> Result<Incoming> {
        Ok(Incoming { first: MessageReader::new(&ANSWER), raw: raw.map(Raw::new).transpose()? })
    }

    /// Reads the next bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(raw) = &mut self.raw else { return self.first.push(bytes) };
        let mut bytes = self.first.take(bytes)?;
        while !bytes.is_empty() {
            bytes = raw.take(bytes)?;
        }
        Ok(())
    }

    /// The tensor, when all bytes have arrived.
    pub fn finish(self) -> Result<ReceivedTensor> {
        let (answer, content) = self.first.finish::<pb::RecvTensorResponse>()?.open_one();
        let content = match self.raw {
            Some(raw) if raw.filled < raw.content.len() => return Err(broken("it ended early")),
            Some(raw) => Some(raw.content),
            None => content,
        };
        match content {
            Some(content) => with_content(answer, content),
            None => received(answer),
        }
    }
}

impl Raw {
    fn new(len: usize) -> Result<Raw> {
        let content = Buffer::scratch(len).ok_or_else(|| exhausted!("OOM when receiving a tensor of {len} bytes"))?;
        Ok(Raw { content, filled: 0, prefix: Vec::new(), left: 0 })
    }

    /// Reads a prefix, or content up to the end of the current message; returns the rest.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8]> {
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
        let place = self.content.bytes_mut().ok_or_else(|| internal!("the buffer of a received tensor is shared"))?;
        let place = place.get_mut(self.filled..self.filled + now.len());
        place.ok_or_else(|| broken("its content is longer than announced"))?.copy_from_slice(now);
        self.filled += now.len();
        self.left -= now.len();
        Ok(rest)
    }
}

pub(super) fn broken(what: &str) -> Error {
    internal!("The answer to RecvTensor cannot be read: {what}")
}

/// Stands in for a dead tensor that cannot be decoded; it is never read.
fn dead_tensor() -> Tensor {
    Tensor::vector::<f32>(&[])
}

fn received(answer: pb::RecvTensorResponse) -> Result<ReceivedTensor> {
    let (is_dead, require_ack) = (answer.is_dead, answer.require_ack);
    let tensor = match decode_tensor(answer.tensor.unwrap_or_default()) {
        Err(_) if is_dead => dead_tensor(),
        tensor => tensor?,
    };
    Ok(ReceivedTensor { tensor, is_dead, require_ack })
}

/// The tensor of an answer whose content is separate.
fn with_content(mut answer: pb::RecvTensorResponse, buffer: Buffer) -> Result<ReceivedTensor> {
    let mut proto = answer.tensor.take().unwrap_or_default();
    let dtype = DType::from_number(proto.dtype).base();
    if dtype.is_plain() {
        let shape = decode_shape(proto.tensor_shape.as_ref())?;
        let tensor = match Tensor::from_buffer(dtype, shape, buffer) {
            Err(_) if answer.is_dead => dead_tensor(),
            tensor => tensor?,
        };
        return Ok(ReceivedTensor { tensor, is_dead: answer.is_dead, require_ack: answer.require_ack });
    }
    proto.tensor_content = buffer.to_bytes();
    answer.tensor = Some(proto);
    received(answer)
}

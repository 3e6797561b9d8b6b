//! Encodes messages with lists of tensors as a few pieces that share the tensors' bytes.

use crate::wire::recv_tensor::SHARE_FROM;
use bytes::Bytes;
use prost::Message;
use prost::encoding::{encode_varint, encoded_len_varint};
use proto::tensorflow as pb;
use status::{Error, Result, exhausted};
use tensor::wire::{encode_shape, encode_tensor};
use tensor::{Buffer, Tensor};

/// The longest message TensorFlow's protocol buffers can hold.
const MAX_MESSAGE: usize = i32::MAX as usize;
/// Before every message: a byte for its compression, four for its length.
const PREFIX: usize = 5;
/// The wire type of a field with a length.
const COUNTED: u8 = 2;
/// The tag of `NamedTensorProto.name`.
const NAME_TAG: u8 = (1 << 3) | 2;
/// The tag of `NamedTensorProto.tensor`.
const TENSOR_TAG: u8 = (2 << 3) | 2;
/// `TensorProto.tensor_content`.
const CONTENT_TAG: u8 = (4 << 3) | 2;

/// The list of tensors in a message.
pub(crate) struct List {
    /// The number of the list's field.
    pub field: u8,
    /// The error for a message that would have this many bytes.
    pub too_long: fn(usize) -> Error,
}

/// The answer to a step.
pub(crate) const ANSWER: List = List {
    field: 1,
    too_long: |length| {
        exhausted!(
            "The results of this step have {length} bytes, and one answer holds at most 2 GiB; fetch fewer at once"
        )
    },
};

/// A tensor in a list, with or without a name.
pub(crate) trait Item {
    /// The tensor.
    fn tensor(&self) -> &Tensor;
    /// Its name, if the list has names.
    fn name(&self) -> Option<&str>;
}

impl Item for Tensor {
    fn tensor(&self) -> &Tensor {
        self
    }

    fn name(&self) -> Option<&str> {
        None
    }
}

impl Item for (String, Tensor) {
    fn tensor(&self) -> &Tensor {
        &self.1
    }

    fn name(&self) -> Option<&str> {
        Some(&self.0)
    }
}

/// Encodes the answer to a step, with its prefix: `items` as its list, then the fields of `rest`.
pub(crate) fn encode_answer(items: &[impl Item], rest: &impl Message) -> Result<Vec<Bytes>> {
    encode(&ANSWER, items, rest)
}

/// Encodes a message with its prefix: `items` as its list, then the fields of `rest`.
pub(crate) fn encode(list: &List, items: &[impl Item], rest: &impl Message) -> Result<Vec<Bytes>> {
    let mut pieces = Pieces { done: Vec::new(), open: vec![0; PREFIX], len: 0 };
    for item in items {
        pieces.open.push((list.field << 3) | COUNTED);
        pieces.add(item)?;
    }
    rest.encode_raw(&mut pieces.open);
    pieces.finish(list.too_long)
}

struct Pieces {
    done: Vec<Bytes>,
    /// The piece that is being written.
    open: Vec<u8>,
    /// How many bytes `done` has.
    len: usize,
}

impl Pieces {
    fn add(&mut self, item: &impl Item) -> Result<()> {
        let tensor = item.tensor();
        let shared = tensor.buffer().filter(|buffer| buffer.len() >= SHARE_FROM);
        let mut fields = match shared {
            None => encode_tensor(tensor)?.encode_to_vec(),
            Some(_) => {
                let (dtype, tensor_shape) = (tensor.dtype().number(), Some(encode_shape(tensor.shape())));
                pb::TensorProto { dtype, tensor_shape, ..pb::TensorProto::default() }.encode_to_vec()
            }
        };
        let content = shared.map_or(0, Buffer::len);
        if content > 0 {
            fields.push(CONTENT_TAG);
            encode_varint(content as u64, &mut fields);
        }
        let tensor_len = fields.len() + content;
        if let Some(name) = item.name() {
            let named = 1 + encoded_len_varint(name.len() as u64) + name.len();
            let inner = named + 1 + encoded_len_varint(tensor_len as u64) + tensor_len;
            encode_varint(inner as u64, &mut self.open);
            self.open.push(NAME_TAG);
            encode_varint(name.len() as u64, &mut self.open);
            self.open.extend_from_slice(name.as_bytes());
            self.open.push(TENSOR_TAG);
        }
        encode_varint(tensor_len as u64, &mut self.open);
        self.open.extend_from_slice(&fields);
        if let Some(content) = shared {
            let before = std::mem::take(&mut self.open);
            self.len += before.len() + content.len();
            self.done.push(before.into());
            self.done.extend(content.to_pieces());
        }
        Ok(())
    }

    /// Writes the length of the message into the prefix.
    fn finish(mut self, too_long: fn(usize) -> Error) -> Result<Vec<Bytes>> {
        let length = self.len + self.open.len() - PREFIX;
        let fits = u32::try_from(length).ok().filter(|_| length <= MAX_MESSAGE);
        let fits = fits.ok_or_else(|| too_long(length))?;
        let patch = |first: &mut [u8]| first[1..PREFIX].copy_from_slice(&fits.to_be_bytes());
        match self.done.first_mut() {
            None => patch(&mut self.open),
            Some(first) => {
                let mut bytes = first.to_vec();
                patch(&mut bytes);
                *first = bytes.into();
            }
        }
        if !self.open.is_empty() {
            self.done.push(self.open.into());
        }
        Ok(self.done)
    }
}

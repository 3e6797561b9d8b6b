//! Conversion between tensors and all encodings of TensorProto.

use crate::buffer::has_room;
use crate::{Buffer, DType, Element, PartialShape, ResourceHandle, Shape, Tensor, Variant, VariantData};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};
use prost::Message;
use proto::tensorflow as pb;
use status::{Result, invalid};
use std::sync::Arc;

/// The size limit of a protobuf message.
pub const MAX_MESSAGE: usize = i32::MAX as usize;

/// The deepest nesting of tensors inside variants that is encoded and decoded; bounds the recursion on untrusted input.
const MAX_DEPTH: usize = 16;

/// A tensor in its message form: type and claimed shape are known, the elements are not validated yet.
#[derive(Clone, Debug, PartialEq)]
pub struct EncodedTensor(pb::TensorProto);

impl EncodedTensor {
    /// Validates and decodes the elements.
    pub fn decode(&self) -> Result<Tensor> {
        decode_tensor(self.0.clone())
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        DType::from_number(self.0.dtype)
    }

    /// The claimed number of elements; `None` if the shape is invalid.
    pub fn elements(&self) -> Option<usize> {
        decode_shape(self.0.tensor_shape.as_ref()).ok()?.checked_elements().ok()
    }

    /// The claimed shape; `None` if it is invalid.
    pub fn shape(&self) -> Option<Shape> {
        decode_shape(self.0.tensor_shape.as_ref()).ok()
    }

    /// Length of the encoded message in bytes.
    pub fn message_len(&self) -> usize {
        self.0.encoded_len()
    }

    /// The message.
    pub fn message(&self) -> &pb::TensorProto {
        &self.0
    }
}

impl From<pb::TensorProto> for EncodedTensor {
    fn from(message: pb::TensorProto) -> EncodedTensor {
        EncodedTensor(message)
    }
}

impl From<Tensor> for EncodedTensor {
    fn from(tensor: Tensor) -> EncodedTensor {
        // TensorFlow's Python client reads strings of a constant from `string_val` only, not from `tensor_content`.
        EncodedTensor(encode_spelled(&tensor).unwrap_or_default())
    }
}

/// Decodes a tensor. Content that is aligned in its message is shared, not copied.
pub fn decode_tensor(message: pb::TensorProto) -> Result<Tensor> {
    decode_nested(message, 0)
}

fn decode_nested(message: pb::TensorProto, depth: usize) -> Result<Tensor> {
    let dtype = DType::from_number(message.dtype).base();
    let shape = decode_shape(message.tensor_shape.as_ref())?;
    let count = shape.checked_elements()?;
    match dtype {
        DType::STRING => {
            let values = match message.tensor_content.is_empty() {
                true => message.string_val,
                false => decode_list(message.tensor_content, count)?,
            };
            Tensor::from_strings(shape, spread(values, count, Bytes::new)?)
        }
        DType::RESOURCE => {
            let messages = match message.tensor_content.is_empty() {
                true => message.resource_handle_val,
                false => decode_messages(message.tensor_content, count)?,
            };
            let handles: Vec<_> = messages.into_iter().map(decode_handle).collect();
            Tensor::from_handles(shape, spread(handles, count, ResourceHandle::default)?)
        }
        DType::VARIANT => {
            let messages = match message.tensor_content.is_empty() {
                true => message.variant_val,
                false => decode_messages(message.tensor_content, count)?,
            };
            let variants = messages.into_iter().map(|v| decode_variant(v, depth)).collect::<Result<Vec<_>>>()?;
            Tensor::from_variants(shape, spread(variants, count, Variant::default)?)
        }
        plain if plain.is_plain() => decode_plain(plain, shape, message),
        other => Err(invalid!("Invalid TensorProto: tensors of type {other} are not supported")),
    }
}

fn decode_plain(dtype: DType, shape: Shape, message: pb::TensorProto) -> Result<Tensor> {
    if !message.tensor_content.is_empty() {
        let expected = shape.elements().checked_mul(dtype.size());
        if expected != Some(message.tensor_content.len()) {
            return Err(invalid!(
                "Invalid TensorProto: tensor_content has {} bytes, which is not what type {dtype} and shape {shape} need",
                message.tensor_content.len()
            ));
        }
        let align = dtype.size().min(8);
        let buffer = Buffer::from_bytes(message.tensor_content, align)
            .ok_or_else(|| status::exhausted!("OOM when allocating tensor with shape{shape} and type {dtype}"))?;
        return Tensor::from_buffer(dtype, shape, buffer);
    }
    match dtype {
        DType::F32 => typed::<f32, _>(dtype, shape, message.float_val, |v| v),
        DType::F64 => typed::<f64, _>(dtype, shape, message.double_val, |v| v),
        DType::I32 | DType::QI32 => typed::<i32, _>(dtype, shape, message.int_val, |v| v),
        DType::U8 | DType::QU8 | DType::U4 => typed::<u8, _>(dtype, shape, message.int_val, |v| v as u8),
        DType::I8 | DType::QI8 | DType::I4 => typed::<i8, _>(dtype, shape, message.int_val, |v| v as i8),
        DType::I16 | DType::QI16 => typed::<i16, _>(dtype, shape, message.int_val, |v| v as i16),
        DType::U16 | DType::QU16 => typed::<u16, _>(dtype, shape, message.int_val, |v| v as u16),
        DType::I64 => typed::<i64, _>(dtype, shape, message.int64_val, |v| v),
        DType::U32 => typed::<u32, _>(dtype, shape, message.uint32_val, |v| v),
        DType::U64 => typed::<u64, _>(dtype, shape, message.uint64_val, |v| v),
        DType::BOOL => typed::<bool, _>(dtype, shape, message.bool_val, |v| v),
        DType::F16 => typed::<f16, _>(dtype, shape, message.half_val, |v| f16::from_bits(v as u16)),
        DType::BF16 => typed::<bf16, _>(dtype, shape, message.half_val, |v| bf16::from_bits(v as u16)),
        DType::C64 => typed::<Complex32, _>(dtype, shape, pairs(message.scomplex_val), |v| Complex32::new(v.0, v.1)),
        DType::C128 => typed::<Complex64, _>(dtype, shape, pairs(message.dcomplex_val), |v| Complex64::new(v.0, v.1)),
        _ => typed::<u8, _>(dtype, shape, message.float8_val.to_vec(), |v| v),
    }
}

fn pairs<T: Copy>(values: Vec<T>) -> Vec<(T, T)> {
    values.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

/// TensorFlow's abbreviation rules: missing trailing values repeat the last one, no values at all means zeros, and
/// surplus values are ignored.
fn typed<T: Element, V: Copy>(dtype: DType, shape: Shape, values: Vec<V>, convert: fn(V) -> T) -> Result<Tensor> {
    let Some(&last) = values.last() else { return Tensor::zeros_of(dtype, shape) };
    if values.len() == 1 {
        return Tensor::uniform(shape, &Tensor::scalar(convert(last)).retyped(dtype)?);
    }
    let mut tensor = Tensor::scratch_of(dtype, shape)?;
    let elements = tensor.values_mut::<T>()?;
    let given = values.len().min(elements.len());
    let (head, tail) = elements.split_at_mut(given);
    for (element, &value) in head.iter_mut().zip(&values) {
        *element = convert(value);
    }
    tail.fill(convert(last));
    Ok(tensor)
}

fn spread<T: Clone>(mut values: Vec<T>, count: usize, empty: fn() -> T) -> Result<Vec<T>> {
    let last = values.last().cloned().unwrap_or_else(empty);
    let more = count.saturating_sub(values.len());
    let room = count.checked_mul(size_of::<T>()).is_some_and(has_room) && values.try_reserve_exact(more).is_ok();
    if !room {
        return Err(status::exhausted!("OOM when allocating {count} elements"));
    }
    values.resize(count, last);
    Ok(values)
}

/// Decodes `count` varint lengths followed by the bytes of all items, TensorFlow's content format for strings.
fn decode_list(mut content: Bytes, count: usize) -> Result<Vec<Bytes>> {
    let bad = || invalid!("Invalid TensorProto: tensor_content does not hold {count} strings");
    if count > content.len() {
        return Err(bad());
    }
    let mut lengths = Vec::with_capacity(count);
    for _ in 0..count {
        lengths.push(prost::decode_length_delimiter(&mut content).map_err(|_| bad())?);
    }
    let mut items = Vec::with_capacity(count);
    for length in lengths {
        if length > content.remaining() {
            return Err(bad());
        }
        items.push(content.split_to(length));
    }
    if content.has_remaining() { Err(bad()) } else { Ok(items) }
}

fn decode_messages<M: Message + Default>(content: Bytes, count: usize) -> Result<Vec<M>> {
    let bad = |error| invalid!("Invalid TensorProto: {error}");
    decode_list(content, count)?.into_iter().map(|item| M::decode(item).map_err(bad)).collect()
}

fn decode_variant(message: pb::VariantTensorDataProto, depth: usize) -> Result<Variant> {
    if depth >= MAX_DEPTH {
        return Err(invalid!("Invalid TensorProto: variants nest deeper than {MAX_DEPTH}"));
    }
    let tensors = message.tensors.into_iter().map(|t| decode_nested(t, depth + 1)).collect::<Result<_>>()?;
    Ok(Variant::Data(Arc::new(VariantData { type_name: message.type_name, metadata: message.metadata, tensors })))
}

/// Reads a resource handle.
pub fn decode_handle(message: pb::ResourceHandleProto) -> ResourceHandle {
    let values = message.dtypes_and_shapes.into_iter();
    ResourceHandle {
        device: message.device,
        container: message.container,
        name: message.name,
        hash_code: message.hash_code,
        type_name: message.maybe_type_name,
        values: values.map(|v| (DType::from_number(v.dtype), decode_partial_shape(v.shape.as_ref()))).collect(),
    }
}

/// Decodes the shape of a value; a missing message means scalar.
pub fn decode_shape(message: Option<&pb::TensorShapeProto>) -> Result<Shape> {
    let Some(message) = message else { return Ok(Shape::scalar()) };
    if message.unknown_rank || message.dim.iter().any(|dim| dim.size < 0) {
        return Err(invalid!("Invalid TensorProto: shape {} is not fully known", decode_partial_shape(Some(message))));
    }
    let dims: Vec<i64> = message.dim.iter().map(|dim| dim.size).collect();
    Shape::checked(&dims)
}

/// Decodes a static shape; a missing message means unknown rank.
pub fn decode_partial_shape(message: Option<&pb::TensorShapeProto>) -> PartialShape {
    match message {
        Some(message) if !message.unknown_rank => {
            PartialShape::new(&message.dim.iter().map(|dim| dim.size).collect::<Vec<_>>())
        }
        _ => PartialShape::unknown(),
    }
}

/// Encodes a tensor as `tensor_content`, which shares the buffer with the message.
pub fn encode_tensor(tensor: &Tensor) -> Result<pb::TensorProto> {
    let content = match tensor.dtype() {
        DType::STRING => encode_list(tensor.strings()?, |item| item.clone())?,
        DType::RESOURCE => encode_list(tensor.handles()?, |handle| encode_handle(handle).encode_to_vec().into())?,
        DType::VARIANT => {
            if tensor.variants()?.iter().any(|variant| variant.encoded_nesting() > MAX_DEPTH) {
                return Err(invalid!("Cannot encode a tensor in which variants nest deeper than {MAX_DEPTH}"));
            }
            let items = tensor.variants()?.iter().map(encode_variant).collect::<Result<Vec<_>>>()?;
            encode_list(&items, |item| item.encode_to_vec().into())?
        }
        _ => tensor.buffer().map(Buffer::to_bytes).unwrap_or_default(),
    };
    if content.len() > MAX_MESSAGE {
        return Err(invalid!(
            "Cannot encode a tensor of type {} and shape {} into one message: it has {} bytes, the limit is 2 GiB",
            tensor.dtype(),
            tensor.shape(),
            content.len()
        ));
    }
    Ok(pb::TensorProto {
        dtype: tensor.dtype().number(),
        tensor_shape: Some(encode_shape(tensor.shape())),
        tensor_content: content,
        ..pb::TensorProto::default()
    })
}

/// Encodes a tensor as `encode_tensor` does, but strings as `string_val`: some readers ignore them in the content.
pub fn encode_spelled(tensor: &Tensor) -> Result<pb::TensorProto> {
    if tensor.dtype() != DType::STRING {
        return encode_tensor(tensor);
    }
    Ok(pb::TensorProto {
        dtype: DType::STRING.number(),
        tensor_shape: Some(encode_shape(tensor.shape())),
        string_val: tensor.strings()?.to_vec(),
        ..pb::TensorProto::default()
    })
}

fn encode_list<T>(items: &[T], encode: impl Fn(&T) -> Bytes) -> Result<Bytes> {
    let items: Vec<Bytes> = items.iter().map(encode).collect();
    let size: usize = items.iter().map(|item| item.len() + prost::length_delimiter_len(item.len())).sum();
    if size > MAX_MESSAGE {
        return Err(invalid!(
            "Cannot encode {} strings of {size} bytes into one message of at most 2 GiB",
            items.len()
        ));
    }
    let mut content = BytesMut::with_capacity(size);
    for item in &items {
        prost::encode_length_delimiter(item.len(), &mut content).map_err(|error| invalid!("{error}"))?;
    }
    for item in &items {
        content.put_slice(item);
    }
    Ok(content.freeze())
}

fn encode_variant(variant: &Variant) -> Result<pb::VariantTensorDataProto> {
    let data = variant.encode()?;
    Ok(pb::VariantTensorDataProto {
        type_name: data.type_name,
        metadata: data.metadata,
        tensors: data.tensors.iter().map(encode_tensor).collect::<Result<_>>()?,
    })
}

/// Writes a resource handle.
pub fn encode_handle(handle: &ResourceHandle) -> pb::ResourceHandleProto {
    let values = handle.values.iter().map(|(dtype, shape)| pb::resource_handle_proto::DtypeAndShape {
        dtype: dtype.number(),
        shape: Some(encode_partial_shape(shape)),
    });
    pb::ResourceHandleProto {
        device: handle.device.clone(),
        container: handle.container.clone(),
        name: handle.name.clone(),
        hash_code: handle.hash_code,
        maybe_type_name: handle.type_name.clone(),
        dtypes_and_shapes: values.collect(),
    }
}

/// A resource handle as the bytes of its message.
pub fn handle_to_bytes(handle: &ResourceHandle) -> Bytes {
    encode_handle(handle).encode_to_vec().into()
}

/// The resource handle in the bytes of a message.
pub fn handle_from_bytes(bytes: &[u8]) -> Result<ResourceHandle> {
    let message = pb::ResourceHandleProto::decode(bytes);
    message.map(decode_handle).map_err(|error| invalid!("These bytes are not a ResourceHandle: {error}"))
}

/// Writes a shape.
pub fn encode_shape(shape: &Shape) -> pb::TensorShapeProto {
    encode_partial_shape(&PartialShape::from(shape))
}

/// Encodes a static shape.
pub fn encode_partial_shape(shape: &PartialShape) -> pb::TensorShapeProto {
    let dims = shape.dims().unwrap_or_default().iter();
    pb::TensorShapeProto {
        dim: dims.map(|&size| pb::tensor_shape_proto::Dim { size, ..Default::default() }).collect(),
        unknown_rank: shape.dims().is_none(),
    }
}

/// A static shape as the bytes of its message, as found in the metadata of some variants.
pub fn partial_shape_to_bytes(shape: &PartialShape) -> Vec<u8> {
    encode_partial_shape(shape).encode_to_vec()
}

/// Decodes the output of `partial_shape_to_bytes`.
pub fn partial_shape_from_bytes(bytes: &[u8]) -> Result<PartialShape> {
    let message = pb::TensorShapeProto::decode(bytes).map_err(|error| invalid!("Invalid TensorShapeProto: {error}"))?;
    Ok(decode_partial_shape(Some(&message)))
}

/// A tensor as the bytes of its message.
pub fn tensor_to_bytes(tensor: &Tensor) -> Result<Bytes> {
    Ok(encode_tensor(tensor)?.encode_to_vec().into())
}

/// As `tensor_to_bytes`, but strings as `string_val`, as TensorFlow's own ops write them.
pub fn tensor_to_spelled_bytes(tensor: &Tensor) -> Result<Bytes> {
    Ok(encode_spelled(tensor)?.encode_to_vec().into())
}

/// Decodes the output of `tensor_to_bytes` or of TensorFlow; large contents share the memory of `bytes`.
pub fn tensor_from_bytes(bytes: &Bytes) -> Result<Tensor> {
    let message = pb::TensorProto::decode(bytes.clone());
    decode_tensor(message.map_err(|_| invalid!("Could not parse serialized proto"))?)
}

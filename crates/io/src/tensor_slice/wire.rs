//! Conversion of messages of the first checkpoint format to the types of this crate.

use super::reader::Meta;
use crate::TensorSlice;
use crate::bundle::wire::{decode_slice, encode_slice};
use bytes::Bytes;
use prost::Message;
use proto::tensorflow as pb;
use status::{Result, invalid};
use tensor::wire::{decode_shape, decode_tensor, encode_shape};
use tensor::{Complex32, Complex64, DType, Shape, Tensor, f16};

/// The version of the format.
const VERSION: i32 = 1;
/// The largest size of a message.
const MAX_MESSAGE: usize = 1 << 31;

/// The header of a file; none if it is invalid.
pub(super) fn decode_meta(bytes: Bytes) -> Result<Option<Vec<Meta>>> {
    let Ok(message) = pb::SavedTensorSlices::decode(bytes) else { return Ok(None) };
    let meta = message.meta.unwrap_or_default();
    let consumer = meta.versions.as_ref().map_or(0, |versions| versions.min_consumer);
    if consumer > VERSION {
        return Err(invalid!("Checkpoint min consumer version {consumer} above current version {VERSION}"));
    }
    let tensor = |tensor: pb::SavedSliceMeta| {
        Ok(Meta {
            name: tensor.name,
            dtype: DType::from_number(tensor.r#type),
            shape: decode_shape(tensor.shape.as_ref())?,
            slices: tensor.slice.iter().map(decode_slice).collect::<Result<_>>()?,
        })
    };
    meta.tensor.into_iter().map(tensor).collect::<Result<_>>().map(Some)
}

pub(super) fn encode_meta(tensors: &[Meta]) -> Vec<u8> {
    let tensors = tensors.iter().map(|meta| pb::SavedSliceMeta {
        name: meta.name.clone(),
        shape: Some(encode_shape(&meta.shape)),
        r#type: meta.dtype.number(),
        slice: meta.slices.iter().map(encode_slice).collect(),
    });
    let versions = pb::VersionDef { producer: VERSION, ..pb::VersionDef::default() };
    let meta = pb::SavedTensorSliceMeta { tensor: tensors.collect(), versions: Some(versions) };
    pb::SavedTensorSlices { meta: Some(meta), data: None }.encode_to_vec()
}

/// The elements of a slice; their number must match its shape.
pub(super) fn decode_data(bytes: Bytes, dtype: DType, shape: Shape) -> Result<Tensor> {
    let wrong = || invalid!("Error copying slice data");
    let message = pb::SavedTensorSlices::decode(bytes).map_err(|_| wrong())?;
    let mut data = message.data.and_then(|slice| slice.data).unwrap_or_default();
    if stored(&data, dtype) != Some(shape.checked_elements()?) {
        return Err(wrong());
    }
    data.dtype = dtype.number();
    data.tensor_shape = Some(encode_shape(&shape));
    data.tensor_content = Bytes::new();
    decode_tensor(data)
}

/// The number of elements of a type in a message; none if the format does not support the type.
fn stored(data: &pb::TensorProto, dtype: DType) -> Option<usize> {
    Some(match dtype {
        DType::F32 => data.float_val.len(),
        DType::F64 => data.double_val.len(),
        DType::STRING => data.string_val.len(),
        DType::I64 => data.int64_val.len(),
        DType::BOOL => data.bool_val.len(),
        DType::F16 => data.half_val.len(),
        DType::C64 => data.scomplex_val.len() / 2,
        DType::C128 => data.dcomplex_val.len() / 2,
        DType::I32 | DType::I16 | DType::I8 | DType::U16 | DType::U8 => data.int_val.len(),
        DType::QI32 | DType::QI16 | DType::QI8 | DType::QU16 | DType::QU8 => data.int_val.len(),
        _ => return None,
    })
}

/// An error if the format cannot hold a tensor.
pub(super) fn check_kind(tensor: &Tensor) -> Result<()> {
    let dtype = tensor.dtype();
    if stored(&pb::TensorProto::default(), dtype).is_none() {
        return Err(invalid!("Tensor slice serialization not implemented for dtype {}", dtype.number()));
    }
    let widest = match dtype {
        DType::BOOL => 1,
        DType::U8 | DType::QU8 => 2,
        DType::U16 | DType::QU16 | DType::F16 => 3,
        floating if floating.is_floating() || floating.is_complex() => floating.size(),
        _ => 10,
    };
    let strings = if dtype == DType::STRING { tensor.byte_size() } else { 0 };
    let bound = tensor.elements().saturating_mul(widest).saturating_add(strings).saturating_add(1 << 10);
    if bound > MAX_MESSAGE {
        return Err(invalid!("Tensor slice is too large to serialize (conservative estimate: {bound} bytes)"));
    }
    Ok(())
}

pub(super) fn encode_data(name: &str, slice: &TensorSlice, tensor: &Tensor) -> Result<Vec<u8>> {
    let data = Some(elements(tensor)?);
    let slice = pb::SavedSlice { name: name.to_string(), slice: Some(encode_slice(slice)), data };
    Ok(pb::SavedTensorSlices { meta: None, data: Some(slice) }.encode_to_vec())
}

/// The elements in the field of their type; type and shape are not repeated.
fn elements(tensor: &Tensor) -> Result<pb::TensorProto> {
    let mut data = pb::TensorProto::default();
    match tensor.dtype() {
        DType::F32 => data.float_val = tensor.values::<f32>()?.to_vec(),
        DType::F64 => data.double_val = tensor.values::<f64>()?.to_vec(),
        DType::I64 => data.int64_val = tensor.values::<i64>()?.to_vec(),
        DType::BOOL => data.bool_val = tensor.values::<bool>()?.to_vec(),
        DType::STRING => data.string_val = tensor.strings()?.to_vec(),
        DType::F16 => data.half_val = tensor.values::<f16>()?.iter().map(|v| i32::from(v.to_bits())).collect(),
        DType::C64 => data.scomplex_val = tensor.values::<Complex32>()?.iter().flat_map(|v| [v.re, v.im]).collect(),
        DType::C128 => data.dcomplex_val = tensor.values::<Complex64>()?.iter().flat_map(|v| [v.re, v.im]).collect(),
        DType::I32 | DType::QI32 => data.int_val = tensor.values::<i32>()?.to_vec(),
        DType::I16 | DType::QI16 => data.int_val = tensor.values::<i16>()?.iter().map(|&v| v.into()).collect(),
        DType::I8 | DType::QI8 => data.int_val = tensor.values::<i8>()?.iter().map(|&v| v.into()).collect(),
        DType::U16 | DType::QU16 => data.int_val = tensor.values::<u16>()?.iter().map(|&v| v.into()).collect(),
        DType::U8 | DType::QU8 => data.int_val = tensor.values::<u8>()?.iter().map(|&v| v.into()).collect(),
        dtype => return Err(invalid!("Tensor slice serialization not implemented for dtype {}", dtype.number())),
    }
    Ok(data)
}

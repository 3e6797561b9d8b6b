//! Conversion of checkpoint messages to the types of this crate.

use super::{Entry, Header, VERSION};
use crate::TensorSlice;
use crate::fs::data_loss;
use bytes::Bytes;
use prost::Message;
use proto::tensorflow as pb;
use status::{Result, invalid};
use tensor::wire::{decode_shape, encode_shape, tensor_from_bytes};
use tensor::{DType, Shape, Tensor, Variant};

/// The largest plausible number of files. A checkpoint that claims more is damaged.
const MAX_SHARDS: u32 = 1 << 20;

pub(super) fn decode_header(bytes: Bytes) -> Result<Header> {
    let header: pb::BundleHeaderProto = decode(bytes, "")?;
    let version = header.version.unwrap_or_default();
    if version.min_consumer > VERSION {
        return Err(invalid!(
            "Checkpoint min consumer version {} above current version {VERSION}",
            version.min_consumer
        ));
    }
    let shards = u32::try_from(header.num_shards).ok().filter(|&shards| shards <= MAX_SHARDS);
    Ok(Header {
        shards: shards.ok_or_else(|| data_loss(format!("{} files", header.num_shards)))?,
        big_endian: header.endianness == pb::bundle_header_proto::Endianness::Big as i32,
        producer: version.producer,
        min_consumer: version.min_consumer,
    })
}

pub(super) fn encode_header(header: &Header) -> Vec<u8> {
    use pb::bundle_header_proto::Endianness;
    let version =
        pb::VersionDef { producer: header.producer, min_consumer: header.min_consumer, ..pb::VersionDef::default() };
    let endianness = if header.big_endian { Endianness::Big } else { Endianness::Little };
    let header = pb::BundleHeaderProto {
        num_shards: header.shards as i32,
        endianness: endianness as i32,
        version: Some(version),
    };
    header.encode_to_vec()
}

pub(super) fn decode_entry(key: &str, bytes: Bytes) -> Result<Entry> {
    let entry: pb::BundleEntryProto = decode(bytes, key)?;
    let unsigned =
        |number: i64| u64::try_from(number).map_err(|_| data_loss(format!("Entry for key {key} not parseable.")));
    let invalid_shape = |_| data_loss(format!("Invalid tensor shape: {key}"));
    Ok(Entry {
        dtype: DType::from_number(entry.dtype),
        shape: decode_shape(entry.shape.as_ref()).map_err(invalid_shape)?,
        shard: unsigned(i64::from(entry.shard_id))? as u32,
        offset: unsigned(entry.offset)?,
        size: unsigned(entry.size)?,
        crc: entry.crc32c,
        slices: entry.slices.iter().map(decode_slice).collect::<Result<_>>()?,
    })
}

pub(super) fn encode_entry(entry: &Entry) -> Vec<u8> {
    let entry = pb::BundleEntryProto {
        dtype: entry.dtype.number(),
        shape: Some(encode_shape(&entry.shape)),
        shard_id: entry.shard as i32,
        offset: entry.offset as i64,
        size: entry.size as i64,
        crc32c: entry.crc,
        slices: entry.slices.iter().map(encode_slice).collect(),
    };
    entry.encode_to_vec()
}

pub(crate) fn decode_slice(slice: &pb::TensorSliceProto) -> Result<TensorSlice> {
    use pb::tensor_slice_proto::extent::HasLengthHack::Length;
    let numbers = slice.extent.iter().map(|extent| match extent.has_length_hack {
        Some(Length(length)) => (extent.start, length),
        None => (extent.start, -1),
    });
    TensorSlice::from_numbers(numbers)
}

pub(crate) fn encode_slice(slice: &TensorSlice) -> pb::TensorSliceProto {
    use pb::tensor_slice_proto::{Extent, extent::HasLengthHack::Length};
    let extents = slice.extents().iter().map(|extent| match extent {
        None => Extent::default(),
        Some(extent) => Extent { start: extent.start as i64, has_length_hack: Some(Length(extent.length as i64)) },
    });
    pb::TensorSliceProto { extent: extents.collect() }
}

fn decode<M: Message + Default>(bytes: Bytes, key: &str) -> Result<M> {
    M::decode(bytes).map_err(|_| data_loss(format!("Entry for key {key} not parseable.")))
}

/// A variant in its stored form.
pub(super) fn encode_variant(variant: &Variant) -> Result<Vec<u8>> {
    let data = variant.encode()?;
    let message = pb::VariantTensorDataProto {
        type_name: data.type_name,
        metadata: data.metadata,
        tensors: data.tensors.iter().map(tensor::wire::encode_tensor).collect::<Result<_>>()?,
    };
    Ok(message.encode_to_vec())
}

/// The variants of a tensor, in their stored form.
pub(super) fn decode_variants(shape: &Shape, stored: Vec<Bytes>) -> Result<Tensor> {
    let parse = |bytes| pb::VariantTensorDataProto::decode(bytes);
    let variants = stored.into_iter().map(parse).collect::<std::result::Result<Vec<_>, _>>();
    let message = pb::TensorProto {
        dtype: DType::VARIANT.number(),
        tensor_shape: Some(encode_shape(shape)),
        variant_val: variants.map_err(|_| data_loss("Unable to parse VariantTensorDataProto"))?,
        ..pb::TensorProto::default()
    };
    tensor_from_bytes(&message.encode_to_vec().into())
}

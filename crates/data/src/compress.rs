//! Compressed elements: all components one behind the other, compressed with Snappy.

use crate::wire::{ComponentPart, CompressedParts};
use crate::{Element, wire};
use snap::raw::{Decoder, Encoder, decompress_len};
use status::{Result, internal, out_of_range};
use std::sync::Arc;
use tensor::wire::{tensor_from_bytes, tensor_to_bytes};
use tensor::{Bytes, DType, Tensor, Variant, VariantData};

/// The type name of a compressed element in variants.
const TYPE_NAME: &str = "tensorflow.data.CompressedElement";
/// Snappy makes data at most this many times smaller.
const MOST_EXPANSION: usize = 64;

/// An element as a variant.
pub(crate) fn compress(element: &[Tensor]) -> Result<Variant> {
    let mut plain = Vec::new();
    let components = element.iter().map(|tensor| append(&mut plain, tensor)).collect::<Result<_>>()?;
    if u32::try_from(plain.len()).is_err() {
        let size = plain.len();
        return Err(out_of_range!("Encountered dataset element of size {size}, exceeding the 4GB Snappy limit."));
    }
    let data = Encoder::new().compress_vec(&plain).map_err(|_| internal!("Failed to compress using snappy."))?;
    let metadata = CompressedParts { data: data.into(), components }.encode();
    Ok(Variant::Data(Arc::new(VariantData { type_name: TYPE_NAME.to_string(), metadata, tensors: Vec::new() })))
}

fn append(plain: &mut Vec<u8>, tensor: &Tensor) -> Result<ComponentPart> {
    let mut sizes = Vec::new();
    let mut add = |bytes: &[u8]| {
        plain.extend_from_slice(bytes);
        sizes.push(bytes.len() as u64);
    };
    match tensor.dtype() {
        DType::STRING => tensor.strings()?.iter().for_each(|string| add(string)),
        dtype if !dtype.is_plain() => add(&tensor_to_bytes(tensor)?),
        _ if tensor.elements() == 0 => {} // it has no buffer in TensorFlow
        _ => {
            let buffer = tensor.buffer().ok_or_else(|| internal!("a component has no plain elements"))?;
            add(buffer.bytes());
        }
    }
    Ok(ComponentPart { dtype: tensor.dtype(), shape: tensor.shape().clone(), sizes })
}

/// True if a variant is a compressed element.
pub(crate) fn is_compressed(variant: &Variant) -> bool {
    message(variant).is_some()
}

/// The element in a variant; none if it is not a compressed element.
pub(crate) fn uncompress(variant: &Variant) -> Option<Result<Element>> {
    message(variant).map(|message| wire::CompressedParts::decode(message).and_then(|parts| element(&parts)))
}

fn message(variant: &Variant) -> Option<&Bytes> {
    match variant {
        Variant::Data(data) if data.type_name == TYPE_NAME => Some(&data.metadata),
        _ => None,
    }
}

fn element(parts: &CompressedParts) -> Result<Element> {
    let plain = Bytes::from(plain(parts)?);
    let mut rest = plain;
    parts.components.iter().map(|part| component(part, &mut rest)).collect()
}

fn plain(parts: &CompressedParts) -> Result<Vec<u8>> {
    let compressed = parts.data.len();
    let size = decompress_len(&parts.data)
        .map_err(|_| internal!("Could not get snappy uncompressed length. Compressed data size: {compressed}"))?;
    let sizes = parts.components.iter().flat_map(|part| &part.sizes);
    let expected = sizes.fold(0u64, |sum, &size| sum.saturating_add(size));
    if size as u64 != expected {
        return Err(internal!(
            "Uncompressed size mismatch. Snappy expects {size} whereas the tensor metadata suggests {expected}"
        ));
    }
    let failed = || internal!("Failed to perform snappy decompression.");
    if size / MOST_EXPANSION > compressed {
        return Err(failed()); // before memory is allocated for it
    }
    Decoder::new().decompress_vec(&parts.data).map_err(|_| failed())
}

/// The next component; `rest` are the bytes of it and those behind it.
fn component(part: &ComponentPart, rest: &mut Bytes) -> Result<Tensor> {
    let wrong = || internal!("Could not parse Tensor");
    let elements = part.shape.checked_elements()?;
    let mut next = |size: u64| {
        let size = usize::try_from(size).ok().filter(|&size| size <= rest.len()).ok_or_else(wrong)?;
        Ok(rest.split_to(size))
    };
    if part.dtype == DType::STRING {
        if part.sizes.len() != elements {
            return Err(wrong());
        }
        let strings = part.sizes.iter().map(|&size| next(size)).collect::<Result<Vec<_>>>()?;
        return Tensor::from_strings(part.shape.clone(), strings);
    }
    let bytes = part.sizes.first().map_or(Ok(Bytes::new()), |&size| next(size))?;
    if !part.dtype.is_plain() {
        return tensor_from_bytes(&bytes);
    }
    if elements.checked_mul(part.dtype.size()) != Some(bytes.len()) {
        return Err(wrong());
    }
    let mut tensor = Tensor::zeros_of(part.dtype, part.shape.clone())?;
    if elements > 0 {
        tensor.bytes_mut()?.copy_from_slice(&bytes);
    }
    Ok(tensor)
}

//! Fingerprint: one hash for each entry of the first dimension.

use crate::hashing::fingerprint64;
use graph::ShapeQuery;
use op::{Grad, Kernel, Op, PLAIN, Setup, binary};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "Fingerprint(data: T, method: string) -> fingerprint: uint8; T: type",
    shape: fingerprint_shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

/// Bytes of a hash.
const WIDTH: usize = 8;

fn fingerprint_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    if query.inputs[0].rank() == Some(0) {
        return Err(invalid!("Shape must be at least rank 1 but is rank 0"));
    }
    query.inputs[1].merge(&PartialShape::scalar())?;
    let count = query.inputs[0].dims().and_then(|dims| dims.first().copied()).unwrap_or(-1);
    Ok(vec![PartialShape::new(&[count, WIDTH as i64])])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("T")?;
    if !dtype.is_plain() && dtype != DType::STRING {
        return Err(invalid!("Data type not supported: {dtype}"));
    }
    Ok(binary(|_, data, method| {
        if method.shape().rank() != 0 {
            return Err(invalid!("`method` should be a scalar string: {}", method.shape()));
        }
        let method = method.to_string_scalar()?;
        if method != "farmhash64" {
            return Err(invalid!("Unsupported fingerprint method: {}", String::from_utf8_lossy(&method)));
        }
        let Some(&count) = data.shape().first() else {
            return Err(invalid!("`data` should have at least one dimension: {}", data.shape()));
        };
        let mut out = Tensor::zeros::<u8>([count, WIDTH])?;
        for (place, hash) in out.values_mut::<u8>()?.chunks_exact_mut(WIDTH).zip(hashes(&data, count)?) {
            place.copy_from_slice(&hash.to_le_bytes());
        }
        Ok(out)
    }))
}

fn hashes(data: &Tensor, count: usize) -> Result<Vec<u64>> {
    let Some(buffer) = data.buffer() else { return string_hashes(data, count) };
    match buffer.bytes().len().checked_div(count).unwrap_or(0) {
        0 => Ok(vec![fingerprint64(&[]); count]),
        width => Ok(buffer.bytes().chunks_exact(width).map(fingerprint64).collect()),
    }
}

/// Of several strings, the hash of their hashes.
fn string_hashes(data: &Tensor, count: usize) -> Result<Vec<u64>> {
    let strings = data.strings()?;
    let hash = |entry: &[tensor::Bytes]| match entry {
        [only] => fingerprint64(only),
        many => fingerprint64(&many.iter().flat_map(|string| fingerprint64(string).to_le_bytes()).collect::<Vec<u8>>()),
    };
    match strings.len().checked_div(count).unwrap_or(0) {
        0 => Ok(vec![fingerprint64(&[]); count]),
        width => Ok(strings.chunks_exact(width).map(hash).collect()),
    }
}

//! Keys of elements for hashing: equal elements have equal keys, and NaN equals nothing.

use rustc_hash::FxHashMap;
use status::{Result, invalid};
use tensor::{DType, Tensor, bf16, f16};

/// A key for each element, such that equal elements have equal keys. An element that equals nothing, not even itself,
/// gets a key of its own: its index, counted from `first`, so that two tensors can share one key space. Keys of
/// strings are numbers from `names`.
pub(crate) fn keys<'a>(tensor: &'a Tensor, first: usize, names: &mut FxHashMap<&'a [u8], u64>) -> Result<Vec<u64>> {
    Ok(match tensor.dtype() {
        DType::I64 => tensor.values::<i64>()?.iter().map(|&v| v as u64).collect(),
        DType::I32 | DType::QI32 => tensor.values::<i32>()?.iter().map(|&v| v as u64).collect(),
        DType::I16 | DType::QI16 => tensor.values::<i16>()?.iter().map(|&v| v as u64).collect(),
        DType::I8 | DType::QI8 => tensor.values::<i8>()?.iter().map(|&v| v as u64).collect(),
        DType::U64 => tensor.values::<u64>()?.to_vec(),
        DType::U32 => tensor.values::<u32>()?.iter().map(|&v| v.into()).collect(),
        DType::U16 | DType::QU16 => tensor.values::<u16>()?.iter().map(|&v| v.into()).collect(),
        DType::U8 | DType::QU8 => tensor.values::<u8>()?.iter().map(|&v| v.into()).collect(),
        DType::BOOL => tensor.values::<bool>()?.iter().map(|&v| v.into()).collect(),
        DType::F64 => reals(tensor.values::<f64>()?, first, |v| v),
        DType::F32 => reals(tensor.values::<f32>()?, first, f64::from),
        DType::F16 => reals(tensor.values::<f16>()?, first, f64::from),
        DType::BF16 => reals(tensor.values::<bf16>()?, first, f64::from),
        DType::STRING => {
            let name = |string: &'a tensor::Bytes| {
                let next = names.len() as u64;
                *names.entry(&string[..]).or_insert(next)
            };
            tensor.strings()?.iter().map(name).collect()
        }
        other => return Err(invalid!("Elements of type {other} cannot be compared")),
    })
}

/// The bits of a double, with one zero; NaN gets the bits of a NaN that no other element has.
fn reals<T: Copy>(values: &[T], first: usize, widen: fn(T) -> f64) -> Vec<u64> {
    let key = |(place, &value): (usize, &T)| match widen(value) {
        0.0 => 0,
        nan if nan.is_nan() => f64::INFINITY.to_bits() + 1 + (first + place) as u64,
        number => number.to_bits(),
    };
    values.iter().enumerate().map(key).collect()
}

/// The number of each key among the different ones, in order of first appearance, and where each appeared first.
pub(crate) struct Distinct {
    pub ids: Vec<usize>,
    pub firsts: Vec<usize>,
}

impl Distinct {
    /// A set of single keys.
    pub(crate) fn of(keys: &[u64]) -> Distinct {
        let (low, high) = keys.iter().fold((u64::MAX, 0), |(low, high), &key| (low.min(key), high.max(key)));
        match high.checked_sub(low) {
            // A table over all values is faster than hashing as long as clearing it is not the main work.
            Some(span) if (span as usize) < keys.len().saturating_mul(16) => {
                Distinct::by_table(keys, low, span as usize)
            }
            _ => Distinct::by_hash(keys),
        }
    }

    fn by_table(keys: &[u64], low: u64, span: usize) -> Distinct {
        let mut slots = vec![NONE; span + 1];
        let mut firsts = Vec::new();
        let ids = keys.iter().enumerate().map(|(place, &key)| {
            let slot = &mut slots[(key - low) as usize];
            if *slot == NONE {
                *slot = firsts.len() as u32;
                firsts.push(place);
            }
            *slot as usize
        });
        let ids = ids.collect();
        Distinct { ids, firsts }
    }

    /// Open addressing: a slot holds the number of a key, the key itself is found where it appeared first.
    fn by_hash(keys: &[u64]) -> Distinct {
        let bits = (keys.len() * 2).next_power_of_two().max(16).trailing_zeros();
        let mask = (1_usize << bits) - 1;
        let mut slots = vec![NONE; mask + 1];
        let mut firsts: Vec<usize> = Vec::new();
        let ids = keys.iter().enumerate().map(|(place, &key)| {
            let mut slot = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize;
            loop {
                match slots[slot] {
                    NONE => {
                        slots[slot] = firsts.len() as u32;
                        firsts.push(place);
                        return firsts.len() - 1;
                    }
                    id if keys[firsts[id as usize]] == key => return id as usize,
                    _ => slot = (slot + 1) & mask,
                }
            }
        });
        let ids = ids.collect();
        Distinct { ids, firsts }
    }

    /// A set of rows of `width` keys.
    pub(crate) fn of_rows(keys: &[u64], width: usize) -> Distinct {
        let mut known: FxHashMap<&[u64], usize> = FxHashMap::default();
        let mut firsts = Vec::new();
        let ids = keys.chunks_exact(width).enumerate().map(|(place, row)| {
            *known.entry(row).or_insert_with(|| {
                firsts.push(place);
                firsts.len() - 1
            })
        });
        let ids = ids.collect();
        Distinct { ids, firsts }
    }
}

/// An empty slot.
const NONE: u32 = u32::MAX;

//! The policy by which a dataset is divided between workers, in its options (`tensorflow.data.Options`).

use crate::DatasetRef;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// The policy that the options of a dataset, or else of its inputs, set to another one than AUTO.
pub(crate) fn policy_of(dataset: &DatasetRef) -> Option<i64> {
    let (mut queue, mut seen) = (vec![dataset.clone()], FxHashSet::default());
    while let Some(dataset) = queue.pop() {
        if !seen.insert(Arc::as_ptr(&dataset).cast::<()>()) {
            continue;
        }
        if let Some(policy) = dataset.options().iter().find_map(|options| in_options(options)) {
            return Some(policy);
        }
        queue.extend(dataset.inputs());
    }
    None
}

/// The field `distribute_options.auto_shard_policy`.
fn in_options(options: &[u8]) -> Option<i64> {
    const DISTRIBUTE_OPTIONS: u64 = 2;
    const AUTO_SHARD_POLICY: u64 = 1;
    let distribute = fields(options).filter(|field| field.number == DISTRIBUTE_OPTIONS).last()?;
    let policy = fields(distribute.bytes).filter(|field| field.number == AUTO_SHARD_POLICY).last()?;
    Some(policy.value as i64).filter(|&policy| policy != 0)
}

/// A field of a message: `value` for integers, `bytes` for strings and messages.
struct Field<'a> {
    number: u64,
    value: u64,
    bytes: &'a [u8],
}

/// The fields of a message up to the first that cannot be read.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = Field<'_>> {
    std::iter::from_fn(move || field(&mut rest))
}

fn field<'a>(rest: &mut &'a [u8]) -> Option<Field<'a>> {
    let tag = varint(rest)?;
    let (mut value, mut bytes): (u64, &[u8]) = (0, &[]);
    match tag & 7 {
        0 => value = varint(rest)?,
        1 => bytes = split(rest, 8)?,
        2 => {
            let length = varint(rest)?;
            bytes = split(rest, usize::try_from(length).ok()?)?;
        }
        5 => bytes = split(rest, 4)?,
        _ => return None,
    }
    Some(Field { number: tag >> 3, value, bytes })
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *split(rest, 1)?.first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn split<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (front, back) = rest.split_at_checked(count)?;
    *rest = back;
    Some(front)
}

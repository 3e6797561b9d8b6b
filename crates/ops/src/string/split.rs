//! Splits strings at separators: StringSplit, StringSplitV2.

use super::text::is_space;
use graph::{Output, ShapeQuery};
use op::{Grad, Kernel, Op, Outputs, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
use tensor::{Bytes, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "StringSplit(input: string, delimiter: string) -> indices: int64, values: string, shape: int64; \
              skip_empty: bool = true",
        shape: sparse_shape,
        grad: Grad::Stop,
        kernel: split_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StringSplitV2(input: string, sep: string) -> indices: int64, values: string, shape: int64; \
              maxsplit: int = -1",
        shape: sparse_shape,
        grad: Grad::Stop,
        kernel: split_v2_kernel,
        facts: PLAIN,
    },
];

/// The parts of each string between occurrences of `separator`, as the indices, values and shape of a sparse matrix.
pub fn string_split(input: &Output, separator: &Output) -> [Output; 3] {
    let node = input.scope().op("StringSplitV2").input(input).input(separator).node();
    [node.output(0), node.output(1), node.output(2)]
}

fn sparse_shape(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::new(&[-1, 2]), PartialShape::of_rank(1), PartialShape::new(&[2])])
}

fn split_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let skip_empty = setup.bool("skip_empty")?;
    Ok(many(move |_, mut inputs| {
        let (input, delimiter) = (inputs.tensor(0)?, inputs.tensor(1)?);
        check_vector(&input)?;
        if delimiter.shape().rank() != 0 {
            return Err(invalid!("delimiter must be a scalar, got shape: {}", delimiter.shape()));
        }
        let delimiter = delimiter.to_string_scalar()?;
        sparse(&input, |string| at_any(string, &delimiter, skip_empty))
    }))
}

fn split_v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let most = setup.int("maxsplit")?;
    Ok(many(move |_, mut inputs| {
        let (input, separator) = (inputs.tensor(0)?, inputs.tensor(1)?);
        check_vector(&input)?;
        if separator.shape().rank() != 0 {
            return Err(invalid!("sep must be a scalar, got shape: {}", separator.shape()));
        }
        let separator = separator.to_string_scalar()?;
        sparse(&input, |string| match (most, separator.is_empty()) {
            (0, _) => vec![string.clone()],
            (_, true) => at_space(string, most),
            (_, false) => at_whole(string, &separator, most),
        })
    }))
}

fn check_vector(input: &Tensor) -> Result<()> {
    match input.shape().rank() {
        1 => Ok(()),
        _ => Err(invalid!("input must be a vector, got shape: {}", input.shape())),
    }
}

/// The parts of all strings, as a sparse matrix with one row for each string.
fn sparse(input: &Tensor, split: impl Fn(&Bytes) -> Vec<Bytes>) -> Result<Outputs> {
    let (mut indices, mut values, mut widest) = (Vec::new(), Vec::new(), 0);
    for (row, string) in input.strings()?.iter().enumerate() {
        let parts = split(string);
        widest = widest.max(parts.len());
        indices.extend((0..parts.len()).flat_map(|column| [row as i64, column as i64]));
        values.extend(parts);
    }
    let count = values.len();
    Ok(outputs![
        Tensor::from_slice::<i64>([count, 2], &indices)?,
        Tensor::from_strings([count], values)?,
        Tensor::vector::<i64>(&[input.elements() as i64, widest as i64]),
    ])
}

/// Splits at every byte in `delimiters`; after every byte if there are none.
fn at_any(string: &Bytes, delimiters: &[u8], skip_empty: bool) -> Vec<Bytes> {
    if string.is_empty() {
        return Vec::new();
    }
    if delimiters.is_empty() {
        return (0..string.len()).map(|at| string.slice(at..at + 1)).collect();
    }
    let (mut parts, mut start) = (Vec::new(), 0);
    for at in 0..=string.len() {
        if at == string.len() || delimiters.contains(&string[at]) {
            if at > start || !skip_empty {
                parts.push(string.slice(start..at));
            }
            start = at + 1;
        }
    }
    parts
}

/// Cut at runs of white space, which leave no empty parts; at most `most` times if that is positive.
fn at_space(string: &Bytes, most: i64) -> Vec<Bytes> {
    let skip = |from: usize, space: bool| {
        (from..string.len()).find(|&at| is_space(string[at]) != space).unwrap_or(string.len())
    };
    let mut parts = Vec::new();
    let mut start = skip(0, true);
    while start < string.len() {
        let end = skip(start, false);
        parts.push(string.slice(start..end));
        start = skip(end, true);
        if most > 0 && parts.len() as i64 == most {
            parts.push(string.slice(start..));
            break;
        }
    }
    parts
}

/// Cut at every occurrence of a separator; at most `most` times if that is positive.
fn at_whole(string: &Bytes, separator: &[u8], most: i64) -> Vec<Bytes> {
    let (mut parts, mut start) = (Vec::new(), 0);
    while let Some(at) = find(&string[start..], separator) {
        parts.push(string.slice(start..start + at));
        start += at + separator.len();
        if most > 0 && parts.len() as i64 == most {
            break;
        }
    }
    parts.push(string.slice(start..));
    parts
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    match part {
        [byte] => text.iter().position(|other| other == byte),
        _ => text.windows(part.len()).position(|window| window == part),
    }
}

//! The number of parts of a partitioned variable: TensorFlow's three rules.

use status::{Result, invalid};
use tensor::{DType, Shape};

/// A rule for the number of parts of a variable, and the axis along which it is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partitioner {
    axis: usize,
    rule: Rule,
    bytes_per_string: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// This many parts.
    Fixed(usize),
    /// Parts of at most this many bytes, and at most this many parts.
    MaxBytes(usize, Option<usize>),
    /// At most this many parts of at least this many bytes.
    MinBytes(usize, usize),
}

impl Partitioner {
    /// This many parts, at most the length of the axis; `fixed_size_partitioner`.
    pub fn fixed(parts: usize) -> Partitioner {
        Partitioner::of(Rule::Fixed(parts))
    }

    /// Parts of at most this many bytes, unless one step along the axis has more; `variable_axis_size_partitioner`.
    pub fn max_bytes(bytes: usize) -> Partitioner {
        Partitioner::of(Rule::MaxBytes(bytes, None))
    }

    /// At most this many parts, each of at least this many bytes; `min_max_variable_partitioner`.
    pub fn min_bytes(most_parts: usize, bytes: usize) -> Partitioner {
        Partitioner::of(Rule::MinBytes(most_parts, bytes))
    }

    fn of(rule: Rule) -> Partitioner {
        Partitioner { axis: 0, rule, bytes_per_string: 16 }
    }

    /// The same rule along another axis than the first.
    pub fn axis(self, axis: usize) -> Partitioner {
        Partitioner { axis, ..self }
    }

    /// The same rule with at most this many parts, even if they become too large.
    pub fn at_most(self, parts: usize) -> Partitioner {
        let rule = match self.rule {
            Rule::Fixed(wanted) => Rule::Fixed(wanted.min(parts)),
            Rule::MaxBytes(bytes, _) => Rule::MaxBytes(bytes, Some(parts)),
            Rule::MinBytes(most, bytes) => Rule::MinBytes(most.min(parts), bytes),
        };
        Partitioner { rule, ..self }
    }

    /// The same rule with this size of a string in bytes; the default is 16.
    pub fn bytes_per_string(self, bytes: usize) -> Partitioner {
        Partitioner { bytes_per_string: bytes, ..self }
    }

    /// The axis, and the number of parts along it.
    pub fn parts(&self, shape: &Shape, dtype: DType) -> Result<(usize, usize)> {
        let axis = self.axis;
        let Some(&length) = shape.dims().get(axis) else {
            return Err(invalid!("Cannot partition variable along axis {axis} when shape is only {shape}"));
        };
        let element = if dtype.base() == DType::STRING { self.bytes_per_string } else { dtype.base().size() };
        let bytes = shape.checked_elements()? as f64 * element as f64;
        let count = match self.rule {
            Rule::Fixed(0) | Rule::MaxBytes(0, _) | Rule::MaxBytes(_, Some(0)) | Rule::MinBytes(_, 0) => {
                return Err(invalid!("Numbers of parts and of bytes must be positive: {self:?}"));
            }
            Rule::Fixed(parts) => parts.min(length),
            Rule::MaxBytes(most_bytes, most_parts) => {
                let step = bytes / length as f64;
                let steps = (most_bytes as f64 / step).floor().max(1.0);
                let parts = (length as f64 / steps).ceil() as usize;
                most_parts.map_or(parts, |most| parts.min(most))
            }
            Rule::MinBytes(most_parts, least) => {
                length.min(most_parts).min((bytes / least as f64).ceil() as usize).max(1)
            }
        };
        Ok((axis, count))
    }
}

//! The number of elements of a dataset.

/// The number of elements of a dataset, as far as it is known without running it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// Exactly this many.
    Finite(u64),
    /// The dataset does not end.
    Infinite,
    /// Only a run can tell.
    Unknown,
}

impl Cardinality {
    /// The number that TensorFlow uses: -1 for infinite, -2 for unknown.
    pub fn number(self) -> i64 {
        match self {
            Cardinality::Finite(count) => i64::try_from(count).unwrap_or(i64::MAX),
            Cardinality::Infinite => -1,
            Cardinality::Unknown => -2,
        }
    }

    /// Applies a function to a known number.
    pub fn map(self, count: impl FnOnce(u64) -> u64) -> Cardinality {
        match self {
            Cardinality::Finite(known) => Cardinality::Finite(count(known)),
            other => other,
        }
    }
}

//! A total order of numbers for sorting: NaN is below everything.

use std::cmp::Ordering;

/// Compares two numbers, each of which may be NaN.
#[inline(always)]
pub(crate) fn compare<T: PartialOrd>(a: &T, b: &T) -> Ordering {
    match a.partial_cmp(b) {
        Some(order) => order,
        // Only NaN does not compare even with itself.
        None => a.partial_cmp(a).is_some().cmp(&b.partial_cmp(b).is_some()),
    }
}

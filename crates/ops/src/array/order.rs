//! A total order of numbers for sorting: not-a-number comes below everything.

use std::cmp::Ordering;

/// How two numbers of which some may not be numbers stand to each other.
#[inline(always)]
pub(crate) fn compare<T: PartialOrd>(a: &T, b: &T) -> Ordering {
    match a.partial_cmp(b) {
        Some(order) => order,
        // Only what is no number does not even compare with itself.
        None => a.partial_cmp(a).is_some().cmp(&b.partial_cmp(b).is_some()),
    }
}

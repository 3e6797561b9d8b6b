//! Random identifiers of steps, sessions and device incarnations.

use rand::Rng;

/// A step's number: 57 random bits, so that two steps of a cluster practically never have the same.
pub(crate) fn step_id() -> u64 {
    rand::rng().random::<u64>() & ((1 << 57) - 1)
}

/// A random number that is never zero.
pub(crate) fn nonzero() -> u64 {
    loop {
        let number = rand::rng().random::<u64>();
        if number != 0 {
            return number;
        }
    }
}

/// A session's handle: 16 hex digits.
pub(crate) fn session_handle() -> String {
    format!("{:016x}", nonzero())
}

/// The id of a request, by which its receiver recognizes a repetition of it; never zero.
pub(crate) fn request_id() -> i64 {
    rand::rng().random_range(1..=i64::MAX)
}

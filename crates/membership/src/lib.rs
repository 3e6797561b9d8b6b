//! Tracks which sessions take part in synchronous training, and whether they are still alive.
//!
//! A [`Member`] is one session as the task that holds the accumulators knows it. A [`Quorum`] decides when an
//! accumulator has gradients of enough members. A [`SyncPolicy`] says what counts as enough. The crate holds no
//! gradients and no tokens, and it does not detect failures: accumulators and queues in `ops` hold the values, and the
//! worker in `cluster` watches the masters of sessions and reports to the member whether they answer.
//!
//! ```
//! # use flowgrid_membership::{Member, Quorum, SyncPolicy};
//! # use std::sync::Arc;
//! let [a, b] = ["/job:worker/task:0", "/job:worker/task:1"].map(|task| Arc::new(Member::new(SyncPolicy::Shrink, task)));
//! let mut quorum = Quorum::default();
//! quorum.join(&a);
//! quorum.join(&b);
//! quorum.add_gradient(&a);
//! assert!(!quorum.is_reached(2, 1));
//! b.end();
//! assert!(quorum.is_reached(2, 1));
//! ```
#![forbid(unsafe_code)]

mod member;
mod policy;
mod quorum;

pub use member::Member;
pub use policy::SyncPolicy;
pub use quorum::Quorum;

#[cfg(test)]
mod tests;

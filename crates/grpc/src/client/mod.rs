//! Calls to other tasks.

pub(crate) mod channel;
pub(crate) mod master;
pub(crate) mod worker;

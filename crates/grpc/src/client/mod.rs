//! Calls to other tasks.

mod bulk;
pub(crate) mod channel;
pub(crate) mod cork;
pub(crate) mod ended;
mod failure;
pub(crate) mod link;
pub(crate) mod master;
mod tensor_stream;
pub(crate) mod together;
mod transfer;
pub(crate) mod worker;

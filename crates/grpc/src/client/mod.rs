//! Clients of the two services.

mod call;
pub(crate) mod channel;
pub(crate) mod coalesced_writes;
mod failure;
pub(crate) mod link;
pub(crate) mod master;
mod recv_tensor;
mod tensor_stream;
pub(crate) mod worker;

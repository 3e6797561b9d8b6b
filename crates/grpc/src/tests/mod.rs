//! The wire: what real TensorFlow sent, what a peer that misbehaves sends, and peers that fall silent.

mod coalesced_writes;
mod inflate;
mod link;
mod master;
mod message_reader;
mod recv_batch;
mod recv_tensor;
mod run_graph;
mod server_def;
mod sockets;
mod tensor_stream;
mod wires;

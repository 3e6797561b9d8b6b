//! Tests of the codecs with bytes that TensorFlow sent and with malformed bytes, and of tasks that fail or stop answering.

mod coalesced_writes;
mod collectives;
mod inflate;
mod link;
mod master;
mod message_reader;
mod recv_batch;
mod recv_tensor;
mod run_graph;
mod server_def;
mod session_options;
mod sockets;
mod tensor_stream;
mod wires;

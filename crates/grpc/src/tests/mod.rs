//! The wire: what real TensorFlow sent, what a peer that misbehaves sends, and peers that fall silent.

mod cork;
mod inflate;
mod link;
mod master;
mod recent;
mod run;
mod server_def;
mod sockets;
mod split;
mod tensor_stream;
mod together;
mod transfer;
mod wires;

//! The wire: what real TensorFlow sent, what a peer that misbehaves sends, and peers that fall silent.

mod cork;
mod inflate;
mod link;
mod master;
mod pieces;
mod recent;
mod run;
mod server_def;
mod session_options;
mod sockets;
mod split;
mod together;
mod transfer;
mod wires;

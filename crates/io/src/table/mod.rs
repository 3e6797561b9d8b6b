//! Sorted tables of keys and values in one file: LevelDB's format, as TensorFlow writes it.

mod block;
mod builder;
mod reader;

pub use builder::TableBuilder;
pub use reader::Table;

/// The last eight bytes of every table.
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// Bytes after the last block.
const FOOTER: usize = 48;
/// Kind of compression and checksum, after every block.
const TRAILER: usize = 5;

//! Sorted tables of keys and values in one file: LevelDB's format, as TensorFlow writes it.

mod block;
mod builder;
mod reader;

pub use builder::TableBuilder;
pub use reader::Table;

/// The magic number at the end of each table.
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// The size of the footer.
const FOOTER: usize = 48;
/// The size of a block's trailer: kind of compression and checksum.
const TRAILER: usize = 5;

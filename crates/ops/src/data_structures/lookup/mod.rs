//! Lookup tables: from keys to values.

pub(crate) mod access;
mod copied;
mod dense;
mod file;
pub(crate) mod fill;
mod map;
mod state;
pub(crate) mod table;

pub use self::access::{
    TABLE_INITIALIZERS, initialize_table, lookup_table_export, lookup_table_find, lookup_table_insert,
    lookup_table_remove, lookup_table_size,
};
pub use self::copied::{CopiedTable, copied_table};
pub use self::fill::{Fill, table_to_fill};
pub use self::table::{hash_table, mutable_hash_table};

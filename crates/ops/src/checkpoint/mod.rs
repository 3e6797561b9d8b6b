//! Checkpoints of both formats.

mod args;
mod configuration;
mod names;
pub(crate) mod pace;
mod remap;
mod restore;
mod save;
mod save_v2;
mod stored;
mod systems;

use op::Op;

pub use names::{SHARDED_FILENAME, sharded_filename, sharded_filespec};
pub use restore::{RESTORE_V2, restore_v2};
pub use save::{SAVE_V2, merge_v2_checkpoints, save_v2};
pub use systems::{systems, systems_of};

pub(crate) const TABLES: &[&[Op]] = &[configuration::OPS, names::OPS, remap::OPS, restore::OPS, save::OPS];

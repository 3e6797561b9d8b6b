//! The file systems of this process, with what the environment says of stores.

use anyhow::{Context, Result};
use flowgrid::FileSystems;
use flowgrid::store::{StoreOptions, file_systems};

/// The local disk, files in memory, and the stores this program was built with.
pub fn systems() -> FileSystems {
    // Names and values that are no text are no settings of stores.
    let variables =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    file_systems(&StoreOptions::from_variables(variables))
}

/// All bytes of a file.
pub fn read(name: &str) -> Result<Vec<u8>> {
    let bytes = systems().read(name).with_context(|| format!("reading {name}"))?;
    Ok(bytes.into())
}

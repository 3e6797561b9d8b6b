//! The file systems of this process. Settings of network stores come from the environment.

use anyhow::{Context, Result};
use flowgrid::FileSystems;
use flowgrid::store::{StoreOptions, file_systems};

/// The local disk, files in memory, and the network stores that this program was built with.
pub fn systems() -> FileSystems {
    // All settings of stores are valid UTF-8, so other variables can be left out.
    let variables =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    file_systems(&StoreOptions::from_variables(variables))
}

/// All bytes of a file.
pub fn read(name: &str) -> Result<Vec<u8>> {
    let bytes = systems().read(name).with_context(|| format!("cannot read {name}"))?;
    Ok(bytes.into())
}

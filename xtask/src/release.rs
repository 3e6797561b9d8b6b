//! What must hold before a release, and takes too long to check for every change.

use crate::{cargo, dist, run};
use anyhow::{Context, Result};

/// Publishes all crates without uploading them, checks licenses and sources of dependencies, and makes the packages.
pub fn check() -> Result<()> {
    // Quick checks first. The database of security advisories needs the network, so it has a command of its own:
    // `cargo deny check advisories`.
    run(cargo().args(["deny", "check", "licenses", "bans", "sources"]))
        .context("`cargo install cargo-deny --locked` installs cargo-deny")?;
    run(cargo().args(["publish", "--workspace", "--dry-run", "--locked"]))?;
    dist::run(&[])
}

//! What must hold before a release, and takes too long to check for every change.

use crate::{cargo, dist, run, target};
use anyhow::{Context, Result};

/// Publishes all crates without uploading them, checks licenses and sources of dependencies, and makes the packages.
pub fn check() -> Result<()> {
    // Quick checks first. The database of security advisories needs the network, so it has a command of its own:
    // `cargo deny check advisories`.
    run(cargo().args(["deny", "check", "licenses", "bans", "sources"]))
        .context("`cargo install cargo-deny --locked` installs cargo-deny")?;
    // Cargo builds every crate from its archive. One folder for all of them, or each would build its dependencies anew.
    let mut publish = cargo();
    publish.args(["publish", "--workspace", "--dry-run", "--locked"]);
    publish.env("CARGO_TARGET_DIR", target().join("publish")).env("CARGO_PROFILE_DEV_DEBUG", "false");
    run(&mut publish)?;
    dist::run(&[])
}

//! A Chromium for the tests that look at TensorBoard as a person would, kept outside the checkout.

use crate::{python, run};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What it may be called.
const NAMES: [&str; 6] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "chrome-headless-shell",
    "headless_shell",
];
/// What it is called by Debian.
const PACKAGE: &str = "chromium-headless-shell";

/// The program: the one that is named or on the PATH, else one that is installed at its first use.
pub fn program(python: &Path) -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("FLOWGRID_BROWSER") {
        return Ok(given.into());
    }
    let cache = python::cache()?.join("browsers");
    if let Some(found) = on_path().or_else(|| within(&cache)) {
        return Ok(found);
    }
    eprintln!("installing Chromium (once)");
    // Playwright downloads a browser into the cache; where that host cannot be reached, Debian's package will do.
    let own = Command::new(python)
        .args(["-m", "playwright", "install", "--only-shell", "chromium"])
        .env("PLAYWRIGHT_BROWSERS_PATH", &cache)
        .status();
    if !own.is_ok_and(|status| status.success()) {
        let _ = run(Command::new("apt-get").arg("update"));
        let _ = run(Command::new("apt-get").args(["install", "--yes", "--no-install-recommends", PACKAGE]));
    }
    match within(&cache).or_else(on_path) {
        Some(found) => Ok(found),
        None => bail!(
            "Chromium is needed by the tests and could not be installed: install it (Debian: apt-get install {PACKAGE}), \
             or name one in FLOWGRID_BROWSER"
        ),
    }
}

fn on_path() -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file())
}

/// A browser somewhere below a folder.
fn within(folder: &Path) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let is_browser =
        |path: &&PathBuf| path.is_file() && path.file_name().is_some_and(|name| NAMES.iter().any(|n| name == *n));
    entries.iter().find(is_browser).cloned().or_else(|| entries.iter().find_map(|entry| within(entry)))
}

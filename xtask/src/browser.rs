//! Finds or installs Chromium, which tests of TensorBoard drive. It is kept outside the checkout.

use crate::{python, run};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of the program in distributions and in the packages of Playwright.
const NAMES: [&str; 6] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "chrome-headless-shell",
    "headless_shell",
];
/// The name of Debian's package.
const PACKAGE: &str = "chromium-headless-shell";

/// The browser: the one that FLOWGRID_BROWSER names, else one on the PATH or in the cache, else a new installation.
pub fn program(python: &Path) -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("FLOWGRID_BROWSER") {
        return Ok(given.into());
    }
    let cache = python::cache()?.join("browsers");
    if let Some(found) = on_path().or_else(|| within(&cache)) {
        return Ok(found);
    }
    eprintln!("installing Chromium (once)");
    // Playwright downloads a browser into the cache; if its host cannot be reached, Debian's package is tried.
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
            "the tests need Chromium, which could not be installed; install it (Debian: apt-get install {PACKAGE}) or set \
             FLOWGRID_BROWSER to its path"
        ),
    }
}

fn on_path() -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file())
}

/// A browser in a folder or in one below it.
fn within(folder: &Path) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let is_browser =
        |path: &&PathBuf| path.is_file() && path.file_name().is_some_and(|name| NAMES.iter().any(|n| name == *n));
    entries.iter().find(is_browser).cloned().or_else(|| entries.iter().find_map(|entry| within(entry)))
}

//! A Python with real TensorFlow and a server that speaks as S3 does, kept outside the checkout.

use crate::run;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// The packages tests need, pinned.
const PACKAGES: &[&str] =
    &["tensorflow-cpu==2.21.0", "tensorboard==2.21.0", "moto[server]==5.2.1", "playwright==1.65.0"];

/// The interpreter of an environment that has them; made at its first use.
pub fn interpreter() -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("FLOWGRID_PYTHON") {
        return Ok(given.into());
    }
    let folder = cache()?.join("python-tf-2.21.0-tb-2.21.0-moto-5.2.1-pw-1.65.0");
    let python = folder.join("bin/python");
    let done = folder.join("complete");
    if !done.exists() {
        eprintln!("installing {} into {} (once)", PACKAGES.join(", "), folder.display());
        let system = system_python()?;
        run(Command::new(system).args(["-m", "venv", "--clear"]).arg(&folder))?;
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(PACKAGES))
        .context("real TensorFlow, TensorBoard and moto are needed by the tests and could not be installed")?;
        std::fs::write(&done, "")?;
    }
    Ok(python)
}

/// `$XDG_CACHE_HOME/flowgrid`, or `~/.cache/flowgrid`.
pub fn cache() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let folder = base.context("neither XDG_CACHE_HOME nor HOME is set: where shall TensorFlow go?")?.join("flowgrid");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

fn system_python() -> Result<&'static str> {
    for name in ["python3.11", "python3"] {
        let version = Command::new(name).arg("--version").output();
        if version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).starts_with("Python 3.11")) {
            return Ok(name);
        }
    }
    bail!("Python 3.11 is needed by the tests: neither python3.11 nor python3 on the PATH is one")
}

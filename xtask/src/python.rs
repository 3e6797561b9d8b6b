//! Python environments for tests and packages: TensorFlow, and maturin. They are kept outside the checkout.

use crate::run;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// The packages that tests need, pinned: TensorFlow, a server that speaks as S3 does, a driver of browsers.
const TEST_PACKAGES: &[&str] =
    &["tensorflow-cpu==2.21.0", "tensorboard==2.21.0", "moto[server]==5.2.1", "playwright==1.65.0"];
/// What makes wheels, pinned: `dist.rs` relies on how this version calls cargo.
const MATURIN: &str = "maturin==1.16.0";

/// The interpreter of the environment for tests, which is created at its first use.
pub fn interpreter() -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("FLOWGRID_PYTHON") {
        return Ok(given.into());
    }
    let folder = environment("python-tf-2.21.0-tb-2.21.0-moto-5.2.1-pw-1.65.0", TEST_PACKAGES)?;
    Ok(folder.join("bin/python"))
}

/// The program maturin, which is installed at its first use.
pub fn maturin() -> Result<PathBuf> {
    Ok(environment("maturin-1.16.0", &[MATURIN])?.join("bin/maturin"))
}

/// The folder of an environment with these packages, which is created at its first use.
fn environment(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = cache()?.join(name);
    let complete = folder.join("complete");
    if !complete.exists() {
        let list = packages.join(", ");
        eprintln!("installing {list} into {} (once)", folder.display());
        run(Command::new(system_python()?).args(["-m", "venv", "--clear"]).arg(&folder))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(folder.join("bin/python")).args(pip).args(packages))
            .with_context(|| format!("cannot install {list}"))?;
        std::fs::write(&complete, "")?;
    }
    Ok(folder)
}

/// `$XDG_CACHE_HOME/flowgrid`, or `~/.cache/flowgrid`.
pub fn cache() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let base = base.context("neither XDG_CACHE_HOME nor HOME is set, so there is no folder for Python packages")?;
    let folder = base.join("flowgrid");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

fn system_python() -> Result<&'static str> {
    for name in ["python3.11", "python3"] {
        let version = Command::new(name).arg("--version").output();
        if version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).starts_with("Python 3.11")) {
            return Ok(name);
        }
    }
    bail!("Python 3.11 is needed, and neither python3.11 nor python3 on the PATH is that version")
}

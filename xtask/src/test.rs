//! All tests.

use crate::{browser, python, root};
use anyhow::Result;
use std::process::Command;

/// What tests need besides what is built by default: all stores.
const FEATURES: &str = "s3,gs,az,hdfs";

/// Runs everything, or only Rust tests whose name contains the filter.
pub fn run(filter: &[&str]) -> Result<()> {
    let interpreter = python::interpreter()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Everything at once, the program too: tests start it as users would. With the same features in all calls, so that
    // nothing is built twice.
    let build = ["build", "--workspace", "--all-targets", "--features", FEATURES];
    crate::run(Command::new(&cargo).current_dir(root()).args(build))?;
    let program = target().join("debug/flowgrid");
    let mut tests = Command::new(&cargo);
    tests.current_dir(root()).args(["test", "--workspace", "--no-fail-fast", "--features", FEATURES]).args(filter);
    tests.env("FLOWGRID_PYTHON", &interpreter).env("FLOWGRID_BIN", &program);
    crate::run(&mut tests)?;
    if !filter.is_empty() {
        return Ok(());
    }
    let mut clients = Command::new(&interpreter);
    clients.current_dir(root().join("crates/conformance/python"));
    clients.args(["-m", "unittest", "discover", "--pattern", "*_test.py", "--verbose"]);
    clients.env("FLOWGRID_BIN", &program).env("TF_CPP_MIN_LOG_LEVEL", "2");
    clients.env("FLOWGRID_BROWSER", browser::program(&interpreter)?);
    crate::run(&mut clients)
}

/// Draws the pictures of the manual.
pub fn screenshots() -> Result<()> {
    let interpreter = python::interpreter()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    crate::run(Command::new(&cargo).current_dir(root()).args(["build", "--bin", "flowgrid"]))?;
    let mut drawing = Command::new(&interpreter);
    drawing.arg(root().join("crates/conformance/python/browser_test.py"));
    drawing.arg("--images").arg(root().join("docs/images"));
    drawing.env("FLOWGRID_BIN", target().join("debug/flowgrid")).env("TF_CPP_MIN_LOG_LEVEL", "2");
    drawing.env("FLOWGRID_BROWSER", browser::program(&interpreter)?);
    crate::run(&mut drawing)
}

/// What takes too long for every change: many faults, many clients, a gigabyte. On the program as it is released.
pub fn soak() -> Result<()> {
    let interpreter = python::interpreter()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    crate::run(Command::new(&cargo).current_dir(root()).args(["build", "--release", "--bin", "flowgrid"]))?;
    let mut clients = Command::new(&interpreter);
    clients.current_dir(root().join("crates/conformance/python"));
    clients.args([
        "-m",
        "unittest",
        "--verbose",
        "faults_test",
        "crowd_test",
        "journal_test",
        "crash_while_saving_test",
        "large_tensor_soak",
    ]);
    clients.env("FLOWGRID_BIN", target().join("release/flowgrid")).env("TF_CPP_MIN_LOG_LEVEL", "2");
    clients.env("FAULT_ROUNDS", "50").env("CROWD_STEPS", "1000");
    clients.env("JOURNAL_KILLS", "20").env("SAVE_KILLS", "50");
    crate::run(&mut clients)?;
    let mut large = Command::new(&interpreter);
    large.current_dir(root().join("crates/conformance/python")).arg("speed/large_variables.py");
    large.env("FLOWGRID_BIN", target().join("release/flowgrid")).env("TF_CPP_MIN_LOG_LEVEL", "2");
    crate::run(&mut large)
}

/// Writes the raw builders of `ops` from its rows.
pub fn write_builders() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let example = ["run", "--package", "flowgrid-conformance", "--bin", "write_builders"];
    crate::run(Command::new(&cargo).current_dir(root()).args(example))
}

/// Lets real TensorFlow write what it expects of the conformance cases.
pub fn update_cases(files: &[&str]) -> Result<()> {
    let script = root().join("crates/conformance/update.py");
    run_python(&script, files)
}

fn run_python(script: &std::path::Path, args: &[&str]) -> Result<()> {
    crate::run(Command::new(python::interpreter()?).arg(script).args(args))
}

fn target() -> std::path::PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into)
}

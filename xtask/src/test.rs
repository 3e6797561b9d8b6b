//! Runs tests, and writes the files that tests compare with.

use crate::{browser, cargo, python, root, run as run_command, target};
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// Cargo features that tests need: all network file systems, Parquet and SQLite. Every call names them, so that no crate is built twice.
const FEATURES: &str = "s3,gs,az,hdfs,parquet,sqlite";

/// Parts of the names of Rust tests that need a Python with TensorFlow, or the built program.
pub const NEED_PYTHON: [&str; 3] = ["tests::client::", "tests::twins::", "graphs_on_a_tensorflow_server"];

/// Runs all tests, or the Rust tests whose name contains the filter.
pub fn run(filter: &[&str]) -> Result<()> {
    let interpreter = python::interpreter()?;
    // The program too: tests start it as users do.
    run_command(cargo().args(["build", "--workspace", "--all-targets", "--features", FEATURES]))?;
    let program = target().join("debug/flowgrid");
    let mut tests = cargo();
    tests.args(["test", "--workspace", "--no-fail-fast", "--features", FEATURES]).args(filter);
    tests.env("FLOWGRID_PYTHON", &interpreter).env("FLOWGRID_BIN", &program);
    run_command(&mut tests)?;
    if !filter.is_empty() {
        return Ok(());
    }
    let mut clients = unit_tests(&interpreter, &program);
    clients.args(["discover", "--pattern", "*_test.py", "--verbose"]);
    clients.env("FLOWGRID_BROWSER", browser::program(&interpreter)?);
    run_command(&mut clients)
}

/// Runs the Rust tests that need no Python. Examples in the documentation are left out: each is compiled first.
pub fn run_quick() -> Result<()> {
    let mut tests = cargo();
    tests.args(["test", "--workspace", "--no-fail-fast", "--features", FEATURES, "--lib", "--bins", "--tests", "--"]);
    for name in NEED_PYTHON {
        tests.args(["--skip", name]);
    }
    run_command(&mut tests)
}

/// Draws the pictures of the manual.
pub fn screenshots() -> Result<()> {
    let interpreter = python::interpreter()?;
    run_command(cargo().args(["build", "--bin", "flowgrid"]))?;
    let script = root().join("crates/conformance/python/browser_test.py");
    let mut drawing = with_program(&interpreter, &target().join("debug/flowgrid"));
    drawing.arg(script).arg("--images").arg(root().join("docs/images"));
    drawing.env("FLOWGRID_BROWSER", browser::program(&interpreter)?);
    run_command(&mut drawing)
}

/// Runs what takes too long for every change, on the release build.
pub fn soak() -> Result<()> {
    let interpreter = python::interpreter()?;
    run_command(cargo().args(["build", "--release", "--bin", "flowgrid"]))?;
    let program = target().join("release/flowgrid");
    let mut clients = unit_tests(&interpreter, &program);
    clients.args(["--verbose", "faults_test", "crowd_test", "journal_test", "crash_while_saving_test"]);
    clients.arg("large_tensor_soak");
    clients.env("FAULT_ROUNDS", "50").env("CROWD_STEPS", "1000");
    clients.env("JOURNAL_KILLS", "20").env("SAVE_KILLS", "50");
    run_command(&mut clients)?;
    run_command(with_program(&interpreter, &program).arg("speed/large_variables.py"))
}

/// Runs every op, or some, with generated bad input.
pub fn bad_input(ops: &[&str]) -> Result<()> {
    let selected = if ops.is_empty() { "all".to_string() } else { ops.join(",") };
    let mut tests = cargo();
    tests.args(["test", "--package", "flowgrid-conformance", "--lib", "--"]);
    tests.args(["--exact", "tests::bad_input::bad_input_is_answered", "--nocapture"]);
    run_command(tests.env("FLOWGRID_BAD_INPUT", selected))
}

/// Writes the files that are generated from the rows of ops.
pub fn write_builders() -> Result<()> {
    run_command(cargo().args(["run", "--package", "flowgrid-conformance", "--bin", "write_builders"]))
}

/// Lets TensorFlow write the expected part of conformance cases: of those in some files, or of all.
pub fn update_cases(files: &[&str]) -> Result<()> {
    let script = root().join("crates/conformance/update.py");
    run_command(Command::new(python::interpreter()?).arg(script).args(files))
}

fn unit_tests(interpreter: &Path, program: &Path) -> Command {
    let mut command = with_program(interpreter, program);
    command.args(["-m", "unittest"]);
    command
}

/// Python in the folder of Python tests, which find the program in the environment.
fn with_program(interpreter: &Path, program: &Path) -> Command {
    let mut command = Command::new(interpreter);
    command.current_dir(root().join("crates/conformance/python"));
    command.env("FLOWGRID_BIN", program).env("TF_CPP_MIN_LOG_LEVEL", "2");
    command
}

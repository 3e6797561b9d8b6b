//! What tests need of the world outside: a Python with TensorFlow, our program, servers that are always stopped.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The Python that has TensorFlow.
pub fn python() -> PathBuf {
    let hint = "FLOWGRID_PYTHON is not set: it names a Python with TensorFlow; `cargo xtask test` sets it";
    std::env::var_os("FLOWGRID_PYTHON").expect(hint).into()
}

/// Our program.
pub fn program() -> PathBuf {
    let hint = "FLOWGRID_BIN is not set: it names the built program; `cargo xtask test` sets it";
    std::env::var_os("FLOWGRID_BIN").expect(hint).into()
}

/// A real TensorFlow server; stopped when dropped.
pub struct TensorFlowServer {
    process: Child,
    pub target: String,
}

const SCRIPT: &str = "
import tensorflow as tf
server = tf.compat.v1.train.Server.create_local_server()
print(server.target.decode() if isinstance(server.target, bytes) else server.target, flush=True)
server.join()
";

impl TensorFlowServer {
    /// Starts one on any free port.
    pub fn start() -> TensorFlowServer {
        let mut command = Command::new(python());
        command.args(["-c", SCRIPT]).env("TF_CPP_MIN_LOG_LEVEL", "2").stdout(Stdio::piped());
        let mut process = command.spawn().expect("FLOWGRID_PYTHON can be run");
        let mut line = String::new();
        let output = process.stdout.take().expect("its output is ours");
        BufReader::new(output).read_line(&mut line).expect("its output can be read");
        assert!(line.starts_with("grpc://"), "the TensorFlow server said {line:?} instead of its target");
        TensorFlowServer { process, target: line.trim().to_string() }
    }
}

impl Drop for TensorFlowServer {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left behind.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs a command and gives what it printed; its failure is the test's.
pub fn output(command: &mut Command) -> String {
    let output =
        command.env("TF_CPP_MIN_LOG_LEVEL", "2").output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

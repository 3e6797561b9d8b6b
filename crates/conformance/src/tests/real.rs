//! What tests need outside this process: a Python with TensorFlow, the program `flowgrid`, servers that always stop.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The Python that has TensorFlow.
pub fn python() -> PathBuf {
    let hint = "FLOWGRID_PYTHON is not set: it names a Python with TensorFlow; `cargo xtask test` sets it";
    std::env::var_os("FLOWGRID_PYTHON").expect(hint).into()
}

/// The program `flowgrid`.
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
    /// Starts a server on any free port.
    pub fn start() -> TensorFlowServer {
        let mut command = Command::new(python());
        command.args(["-c", SCRIPT]).env("TF_CPP_MIN_LOG_LEVEL", "2").stdout(Stdio::piped());
        let mut process = command.spawn().expect("FLOWGRID_PYTHON can be run");
        let mut line = String::new();
        let output = process.stdout.take().expect("its output is piped");
        BufReader::new(output).read_line(&mut line).expect("its output can be read");
        assert!(line.starts_with("grpc://"), "the TensorFlow server said {line:?} instead of its target");
        TensorFlowServer { process, target: line.trim().to_string() }
    }
}

impl Drop for TensorFlowServer {
    fn drop(&mut self) {
        // Errors mean that it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The kind of the servers of a cluster.
#[derive(Clone, Copy)]
pub enum Kind {
    Flowgrid,
    TensorFlow,
}

/// Two parameter servers and some workers on this machine; stopped when dropped.
pub struct Cluster {
    process: Child,
    pub ps: Vec<String>,
    pub workers: Vec<String>,
}

const CLUSTER: &str = "
import sys
sys.path.insert(0, sys.argv[1])
from twin import local_cluster
for job, targets in local_cluster(ps=2, worker=int(sys.argv[2])).items():
    for target in targets:
        print('/job:' + job, target, flush=True)
print('ready', flush=True)
sys.stdin.read()
";

impl Cluster {
    /// Starts one on free ports.
    pub fn start(kind: Kind, workers: usize) -> Cluster {
        Cluster::start_with(kind, workers, &[])
    }

    /// The same with further flags for Flowgrid's servers.
    pub fn start_with(kind: Kind, workers: usize, flags: &[&str]) -> Cluster {
        let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../flowgrid/examples");
        let mut command = match kind {
            Kind::TensorFlow => Command::new(python()),
            Kind::Flowgrid => Command::new(program()),
        };
        match kind {
            Kind::TensorFlow => command.args(["-c", CLUSTER]).arg(examples).arg(workers.to_string()),
            Kind::Flowgrid => command.args(["local", "--ps", "2", "--workers", &workers.to_string()]).args(flags),
        };
        command.env("TF_CPP_MIN_LOG_LEVEL", "2").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("a cluster can be started");
        let lines = BufReader::new(process.stdout.take().expect("its output is piped")).lines();
        let lines: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.starts_with("ready")).collect();
        let target =
            |line: &String| line.split_whitespace().find(|word| word.starts_with("grpc://")).map(str::to_string);
        let targets = |job: &str| lines.iter().filter(|line| line.starts_with(job)).filter_map(target).collect();
        let cluster = Cluster { process, ps: targets("/job:ps"), workers: targets("/job:worker") };
        assert_eq!((cluster.ps.len(), cluster.workers.len()), (2, workers), "the cluster printed {lines:?}");
        cluster
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The tasks end with the process that started them.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The time limit of a program.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs a command and returns what it printed. A failure, or a program that does not end, fails the test.
pub fn output(command: &mut Command) -> String {
    command.env("TF_CPP_MIN_LOG_LEVEL", "2").stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (number, (done, watched)) = (child.id(), channel::<()>());
    let watch = thread::spawn(move || {
        let late = watched.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout);
        late && Command::new("kill").args(["-9", &number.to_string()]).status().is_ok()
    });
    let output = child.wait_with_output();
    drop(done);
    let killed = watch.join().is_ok_and(|killed| killed);
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!killed, "{command:?} did not end: {text}{errors}");
    assert!(output.status.success(), "{command:?}: {text}{errors}");
    text
}

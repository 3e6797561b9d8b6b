//! A cluster of processes on this machine, started and stopped as one.

use anyhow::{Context, Result, bail};
use session::{ClusterSpec, Task};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The time that tasks have to end their steps before they are killed.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// The time between two checks whether a task has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Running tasks. They stop when this is dropped, and when this process ends in any way.
pub struct Processes {
    /// The addresses at which they listen.
    pub cluster: ClusterSpec,
    tasks: Vec<(Task, Child)>,
}

impl Processes {
    /// Starts tasks on free ports of the loopback interface and waits until all are ready.
    /// `flags` gives further flags of each task.
    pub fn start(jobs: &[(&str, usize)], flags: impl Fn(&Task) -> Vec<String>) -> Result<Processes> {
        let cluster = on_free_ports(jobs)?;
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let mut processes = Processes { cluster, tasks: Vec::new() };
        for task in processes.cluster.tasks() {
            let mut command = Command::new(&program);
            command.args(["server", "--stop-with-stdin", "--cluster", &processes.cluster.to_string()]);
            command.args(["--job", &task.job, "--task", &task.index.to_string()]).args(flags(&task));
            command.env_remove("TF_CONFIG").stdin(Stdio::piped()).stdout(Stdio::piped());
            // A terminal sends Ctrl-C to the whole process group. In a group of their own, the tasks outlive the sessions
            // that use them.
            command.process_group(0);
            let child = command.spawn().with_context(|| format!("cannot start {task}"))?;
            processes.tasks.push((task, child));
        }
        processes.wait_ready()?;
        Ok(processes)
    }

    fn wait_ready(&mut self) -> Result<()> {
        for (task, child) in &mut self.tasks {
            let mut line = String::new();
            if let Some(output) = child.stdout.take() {
                BufReader::new(output)
                    .read_line(&mut line)
                    .with_context(|| format!("cannot read the output of {task}"))?;
            }
            if !line.contains("ready") {
                bail!("{task} ended before it was ready: {}", child.wait()?);
            }
        }
        Ok(())
    }

    /// The tasks with their process ids, in order.
    pub fn tasks(&self) -> impl Iterator<Item = (&Task, u32)> {
        self.tasks.iter().map(|(task, child)| (task, child.id()))
    }

    /// The target of a session with this task as master.
    pub fn target(&self, task: &Task) -> String {
        format!("grpc://{}", self.cluster.address(task).unwrap_or_default())
    }

    /// A task that has ended, if there is one.
    pub fn ended(&mut self) -> Option<(Task, ExitStatus)> {
        self.tasks.iter_mut().find_map(|(task, child)| Some((task.clone(), child.try_wait().ok()??)))
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for (_, child) in &mut self.tasks {
            drop(child.stdin.take());
        }
        let deadline = Instant::now() + STOP_LIMIT;
        for (_, child) in &mut self.tasks {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(CHECK_INTERVAL);
            }
            // An error means that the process has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A cluster on ports that are free at the moment.
fn on_free_ports(jobs: &[(&str, usize)]) -> Result<ClusterSpec> {
    let mut cluster = ClusterSpec::new();
    // All listeners are kept until the end, or the same port might be found twice.
    let mut held = Vec::new();
    for &(job, count) in jobs {
        for index in 0..count {
            let listener = TcpListener::bind("127.0.0.1:0").context("no free port on 127.0.0.1")?;
            cluster = cluster.with_task(job, index as u32, &listener.local_addr()?.to_string())?;
            held.push(listener);
        }
    }
    Ok(cluster)
}

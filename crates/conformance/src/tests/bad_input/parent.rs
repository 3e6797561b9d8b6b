//! The parent process: starts children for groups of ops, and starts the next one where a child ended.

use super::report::{Failure, Report};
use super::{CHILD, TEST, Work, ops};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The ops of one child.
const GROUP: usize = 100;
/// The memory of a child, in KiB.
const MEMORY: usize = 4 << 20;
/// In the part that always runs, every n-th mutant of an op.
const PART: usize = 29;

/// Runs the selected ops: all, those named, or a part of the mutants of all.
pub fn run(selected: &str) -> Report {
    let names = ops();
    let every = if selected.is_empty() { PART } else { 1 };
    let group = if selected.is_empty() { names.len().div_ceil(2) } else { GROUP };
    let groups: Vec<Work> = match selected {
        "" | "all" => (0..names.len())
            .step_by(group)
            .map(|first| Work { first, end: (first + group).min(names.len()), done: 0, every })
            .collect(),
        chosen => {
            let places = chosen.split(',').filter_map(|name| names.iter().position(|op| op == name));
            places.map(|first| Work { first, end: first + 1, done: 0, every }).collect()
        }
    };
    let (report, next) = (Mutex::new(Report::default()), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(work) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = run_group(&names, work, !selected.is_empty());
                    report.lock().expect("no thread panics").add(found);
                }
            });
        }
    });
    report.into_inner().expect("no thread panics")
}

/// Runs a group, in as many children as it takes.
fn run_group(names: &[String], work: &Work, show: bool) -> Report {
    let mut report = Report::default();
    let mut rest = Work { first: work.first, end: work.end, done: work.done, every: work.every };
    while rest.first < rest.end {
        let Some((op, done)) = run_child(&rest, &mut report) else { break };
        let Some(first) = names.iter().position(|name| *name == op) else { break };
        rest = Work { first, done, ..rest };
    }
    if show {
        println!("{} to {}: {report}", names[work.first], names[work.end - 1]);
    }
    report
}

/// Runs a child. Returns the op and the mutant after the one that ended it, or none if it came to its end.
fn run_child(work: &Work, report: &mut Report) -> Option<(String, usize)> {
    let folder = Folder::new(work);
    let program = std::env::current_exe().expect("a test is a program");
    let limit = format!("ulimit -v {MEMORY}; ulimit -c 0; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limit]).arg(program).args(["--exact", TEST, "--nocapture", "--test-threads", "1"]);
    command.env(CHILD, work.write()).current_dir(&folder.0).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("this program can be started");
    let stderr = child.stderr.take().expect("its errors are piped");
    let errors = std::thread::spawn(move || tail(stderr));
    let lines = BufReader::new(child.stdout.take().expect("its output is piped"));
    let mut reader = Reader::default();
    for line in lines.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        if let Some(at) = line.find('@') {
            reader.line(&line[at + 1..], report);
        }
    }
    let status = child.wait().expect("a child can be waited for");
    let errors = errors.join().unwrap_or_default();
    if reader.ended {
        return None;
    }
    if !reader.busy {
        let kind = if reader.stuck { "hang" } else { "abort" };
        report.count(kind);
        report.fail(reader.failure(kind, format!("{status}: {errors}")));
    }
    (!reader.op.is_empty()).then_some((reader.op, reader.number + 1))
}

/// The line of the errors of a child that says why it ended, or the last line.
fn tail(mut errors: impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = errors.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let reasons = ["memory allocation", "overflowed its stack", "panicked at"];
    let reason = |line: &&&str| reasons.iter().any(|reason| line.contains(reason));
    let found = lines.iter().rev().find(reason).or(lines.last()).copied();
    found.unwrap_or_default().chars().take(200).collect()
}

/// Reads the lines of a child.
#[derive(Default)]
struct Reader {
    op: String,
    number: usize,
    what: String,
    stuck: bool,
    busy: bool,
    ended: bool,
}

impl Reader {
    fn line(&mut self, line: &str, report: &mut Report) {
        let mut parts = line.splitn(3, '\t');
        let (head, first, second) = (parts.next(), parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        match head.unwrap_or_default() {
            "op" => {
                self.op = first.to_string();
                report.op(&self.op);
            }
            "begin" => {
                self.number = first.parse().unwrap_or_default();
                self.what = second.to_string();
            }
            kind @ ("panic" | "memory") => report.fail(self.failure(kind, format!("{first} {second}"))),
            "busy" => {
                self.busy = true;
                report.count(head.unwrap_or_default());
                report.fail(self.failure("hang", "computes after it is cancelled".to_string()));
            }
            kind @ ("answer" | "error" | "waits") => report.count(kind),
            "stuck" => self.stuck = true,
            "end" => self.ended = true,
            _ => {}
        }
    }

    fn failure(&self, kind: &str, detail: String) -> Failure {
        Failure { kind: kind.to_string(), op: self.op.clone(), what: self.what.clone(), detail }
    }
}

/// A folder for the files of a child; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(work: &Work) -> Folder {
        let name = format!("flowgrid-bad-input-{}-{}-{}", std::process::id(), work.first, work.done);
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Remaining files are in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

//! Bad input for every op, generated: each op answers an error or a result, without a panic, an abort or a hang.
//!
//! The nodes are those of the cases, changed in one place each: ranks, sizes, values, handles, attributes. They run in child
//! processes of limited memory, which are this test again; the parent names the node that ended a child. `FLOWGRID_BAD_INPUT`
//! selects what runs: `all`, or ops by name, separated by commas. Without it a small part runs.

mod attrs;
mod child;
mod edit;
mod functions;
mod inputs;
mod parent;
mod report;
mod samples;

use std::time::Duration;

/// The variable that selects what runs.
const SELECT: &str = "FLOWGRID_BAD_INPUT";
/// The variable that makes a process a child: its work, as written by `Work`.
const CHILD: &str = "FLOWGRID_BAD_INPUT_CHILD";
/// The name of the test, which children run.
const TEST: &str = "tests::bad_input::bad_input_is_answered";
/// When a step is cancelled.
const LIMIT: Duration = Duration::from_millis(500);
/// How long a step may compute after it was cancelled: a kernel that fills a large result is not interrupted.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a child may show no progress at all: a step that is not cancelled.
const STUCK: Duration = Duration::from_secs(60);

/// What one child does.
struct Work {
    /// The ops `first..end` of the sorted names.
    first: usize,
    end: usize,
    /// The number of mutants of the first op that are done already.
    done: usize,
    /// Run every n-th mutant.
    every: usize,
}

impl Work {
    fn write(&self) -> String {
        format!("{} {} {} {}", self.first, self.end, self.done, self.every)
    }

    fn read(text: &str) -> Option<Work> {
        let numbers: Vec<usize> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
        let &[first, end, done, every] = numbers.as_slice() else { return None };
        Some(Work { first, end, done, every })
    }
}

/// The names of all ops, sorted.
fn ops() -> Vec<String> {
    let mut names: Vec<String> = data::registry().names().map(str::to_string).collect();
    names.sort();
    names
}

#[test]
fn bad_input_is_answered() {
    if let Ok(work) = std::env::var(CHILD) {
        return child::run(&Work::read(&work).expect("the work of a child"));
    }
    let selected = std::env::var(SELECT).unwrap_or_default();
    let report = parent::run(&selected);
    println!("{report}");
    assert!(report.failures() == 0, "{report}");
}

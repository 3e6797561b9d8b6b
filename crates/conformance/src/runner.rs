//! Runs all cases on a runtime and reports failures.

use crate::case::{Case, Want, parse};
use crate::compare::compare;
use crate::expected::{Elements, Expected};
use crate::graph_case::{GraphCase, parse_graphs};
use status::Result;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use tensor::Tensor;

/// A runtime on which cases run.
pub trait Runner {
    /// True if this runtime can run the case.
    fn takes(&self, case: &Case) -> bool;
    /// Runs the node of a case.
    fn run(&self, case: &Case) -> Result<Answer>;
    /// True if its answers have gradients.
    fn differentiates(&self) -> bool {
        false
    }
}

/// The answer of a runtime.
#[derive(Debug, Default)]
pub struct Answer {
    /// Outputs, in order.
    pub outputs: Vec<Tensor>,
    /// Variables after the run, by the argument they were passed to; none for those without a value.
    pub after: Vec<(String, Option<Tensor>)>,
    /// Gradients of the weighted sum of the outputs by input, from runtimes that differentiate.
    pub grads: Vec<(String, Option<Tensor>)>,
}

/// The content of all case files.
pub struct Files {
    /// The cases of one node, in order of file and line.
    pub cases: Vec<Case>,
    /// The graph cases, in order of file and line.
    pub graphs: Vec<GraphCase>,
    /// Ops without a case, from the file `uncovered.txt`.
    pub uncovered: BTreeSet<String>,
    /// Errors of reading.
    pub errors: Vec<String>,
}

impl Files {
    /// Reads all files in `cases/`.
    pub fn read() -> Files {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
        let mut files = Files { cases: Vec::new(), graphs: Vec::new(), uncovered: BTreeSet::new(), errors: Vec::new() };
        for path in walk(&root) {
            let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
            files.add(&name, &path);
        }
        files
    }

    fn add(&mut self, name: &str, path: &Path) {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return self.errors.push(format!("{name}: {error}")),
        };
        if name.ends_with("uncovered.txt") {
            let words = text.lines().filter_map(|line| line.split_whitespace().next());
            self.uncovered.extend(words.filter(|word| !word.starts_with('#')).map(str::to_string));
        } else if name.ends_with(".case") {
            match parse(name, &text) {
                Ok(cases) => self.cases.extend(cases),
                Err(error) => self.errors.push(error.message),
            }
            self.graphs.extend(parse_graphs(name, &text));
        }
    }
}

/// All files in a folder and its subfolders, sorted.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// Runs the cases that match `filter`, or all if it is empty. Returns one text for each failure.
pub fn run_all(runner: &dyn Runner, files: &Files, filter: &str) -> Vec<String> {
    let mut failures = files.errors.clone();
    for case in &files.cases {
        if !case.is_named(filter) || !runner.takes(case) {
            continue;
        }
        for failure in run_one(runner, case) {
            failures.push(format!("{} {}: {failure}", case.place, case.op));
        }
    }
    failures
}

fn run_one(runner: &dyn Runner, case: &Case) -> Vec<String> {
    let answer = match caught(|| runner.run(case)) {
        Ok(answer) => answer,
        Err(panic) => return vec![panic],
    };
    let (outputs, after, answer) = match (&case.want, answer) {
        (Want::Outputs { outputs, after }, Ok(answer)) => (outputs, after, answer),
        (want, answer) => return compare_error(want, answer.map(|answer| answer.outputs)),
    };
    let found: Vec<Option<&Tensor>> = answer.outputs.iter().map(Some).collect();
    let mut failures = compare_all(case.tolerance, "out", &found, outputs);
    let left: Vec<Option<&Tensor>> = answer.after.iter().map(|(_, tensor)| tensor.as_ref()).collect();
    failures.extend(compare_all(case.tolerance, "after", &left, after));
    if runner.differentiates() && !case.grads.is_empty() {
        let grads: Vec<Option<&Tensor>> = answer.grads.iter().map(|(_, tensor)| tensor.as_ref()).collect();
        failures.extend(compare_all(case.tolerance, "grad", &grads, &case.grads));
    }
    failures
}

/// The differences between an answer and a case of one node, or a step of a graph.
pub fn compare_answer(tolerance: Option<f64>, want: &Want, answer: Result<Vec<Tensor>>) -> Vec<String> {
    match (want, answer) {
        (Want::Outputs { outputs, .. }, Ok(answer)) => {
            let found: Vec<Option<&Tensor>> = answer.iter().map(Some).collect();
            compare_all(tolerance, "out", &found, outputs)
        }
        (want, answer) => compare_error(want, answer),
    }
}

/// The difference if one of both is an error.
fn compare_error(want: &Want, answer: Result<Vec<Tensor>>) -> Vec<String> {
    match (want, answer) {
        (Want::Unknown, _) => vec!["nothing is expected yet: run update.py".into()],
        (Want::Error(code, text), Err(error)) => {
            let said = error.message.split("\n\t [[").next().unwrap_or_default();
            if error.code == *code && said.contains(text.as_str()) {
                return Vec::new();
            }
            vec![format!("wrong error\n    expected {code:?}: {text}\n    got      {:?}: {said}", error.code)]
        }
        (Want::Error(code, text), Ok(outputs)) => {
            vec![format!("no error, but {outputs:?}\n    expected {code:?}: {text}")]
        }
        (Want::Outputs { .. }, Err(error)) => vec![format!("error {error}")],
        (Want::Outputs { .. }, Ok(_)) => Vec::new(),
    }
}

fn compare_all(
    tolerance: Option<f64>,
    line: &str,
    found: &[Option<&Tensor>],
    expected: &[(String, Expected)],
) -> Vec<String> {
    let mut failures = Vec::new();
    if found.len() != expected.len() {
        failures.push(format!("{} '{line}' instead of {}", found.len(), expected.len()));
    }
    for (found, (name, expected)) in found.iter().zip(expected) {
        let difference = match (found, &expected.elements) {
            (None, Elements::None) => Ok(()),
            // A missing gradient equals a gradient of zeros.
            (None, elements) if line == "grad" && elements.are_zero() => Ok(()),
            (None, _) => Err("has no value".into()),
            (Some(tensor), _) => compare(tensor, expected, tolerance),
        };
        failures.extend(difference.err().map(|what| format!("{line} {name}: {what}")));
    }
    failures
}

/// The result of `work`, or the text of its panic.
pub fn caught<T>(work: impl FnOnce() -> T) -> std::result::Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        format!("PANIC: {}", text.unwrap_or_else(|| "of unknown kind".into()))
    })
}

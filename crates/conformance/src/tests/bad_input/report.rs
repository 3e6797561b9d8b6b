//! What became of all mutants: counts, and the failures by place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A mutant that was not answered.
#[derive(Clone, Debug)]
pub struct Failure {
    /// `panic`, `abort`, `hang` or `memory`.
    pub kind: String,
    pub op: String,
    /// The sample and its change.
    pub what: String,
    /// The place and the text of a panic, the status of a process.
    pub detail: String,
}

/// Counts and failures.
#[derive(Default)]
pub struct Report {
    ops: BTreeSet<String>,
    counts: BTreeMap<String, usize>,
    failures: Vec<Failure>,
}

impl Report {
    /// Notes that mutants of an op ran.
    pub fn op(&mut self, op: &str) {
        self.ops.insert(op.to_string());
    }

    /// Counts a mutant that was answered.
    pub fn count(&mut self, kind: &str) {
        *self.counts.entry(kind.to_string()).or_default() += 1;
    }

    /// Adds a failure.
    pub fn fail(&mut self, failure: Failure) {
        self.failures.push(failure);
    }

    /// Adds another report.
    pub fn add(&mut self, other: Report) {
        self.ops.extend(other.ops);
        self.failures.extend(other.failures);
        for (kind, count) in other.counts {
            *self.counts.entry(kind).or_default() += count;
        }
    }

    /// The number of mutants that ran.
    pub fn nodes(&self) -> usize {
        self.counts.values().sum()
    }

    /// The number of failures. Memory is not one: some results are as large as the input says.
    pub fn failures(&self) -> usize {
        self.failures.len() - self.of("memory")
    }

    fn of(&self, kind: &str) -> usize {
        self.failures.iter().filter(|failure| failure.kind == kind).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ops, {} nodes:", self.ops.len(), self.nodes())?;
        for kind in ["error", "answer", "waits"] {
            write!(f, " {kind} {},", self.counts.get(kind).unwrap_or(&0))?;
        }
        for kind in ["panic", "abort", "hang", "memory"] {
            write!(f, " {kind} {},", self.of(kind))?;
        }
        writeln!(f)?;
        let mut groups: BTreeMap<(&str, String), Vec<&Failure>> = BTreeMap::new();
        for failure in &self.failures {
            let place = if failure.kind == "panic" { place(&failure.detail) } else { failure.op.clone() };
            groups.entry((&failure.kind, place)).or_default().push(failure);
        }
        for ((kind, place), failures) in groups {
            let ops: BTreeSet<&str> = failures.iter().map(|failure| failure.op.as_str()).collect();
            let ops: Vec<&str> = ops.into_iter().take(6).collect();
            let first = failures[0];
            writeln!(f, "{kind} {place}: {} times, {}", failures.len(), ops.join(" "))?;
            writeln!(f, "    {}: {}", first.op, first.what)?;
            writeln!(f, "    {}", first.detail.chars().take(300).collect::<String>())?;
        }
        Ok(())
    }
}

/// The file and the line of a panic.
fn place(detail: &str) -> String {
    let place = detail.split(" at ").nth(1).unwrap_or(detail);
    place.split(": ").next().unwrap_or_default().trim_end_matches(':').chars().take(120).collect()
}

//! Every case on every runtime. `CASE=substring` selects cases by file, line or op.

use super::session::InSession;
use crate::{Files, KernelAlone, Runner, caught, check_shapes, run_all};
use flowgrid::{ClusterSpec, Server, ServerOptions, Task};
use std::collections::BTreeSet;

fn check(test: &str, runner: &dyn Runner) {
    report(test, run_all(runner, &Files::read(), &filter()));
}

pub(super) fn filter() -> String {
    std::env::var("CASE").unwrap_or_default()
}

/// Cases with known differences to TensorFlow: `differences.txt`, which may only shrink.
fn known(test: &str) -> BTreeSet<String> {
    let lines = include_str!("../../differences.txt").lines().filter(|line| !line.starts_with('#'));
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    words.filter(|words| words[0] == test).map(|words| words[1].to_string()).collect()
}

pub(super) fn report(test: &str, failures: Vec<String>) {
    let known = known(test);
    let place = |failure: &String| failure.split_whitespace().next().unwrap_or_default().to_string();
    let (old, new): (Vec<String>, Vec<String>) =
        failures.into_iter().partition(|failure| known.contains(&place(failure)));
    assert!(new.is_empty(), "{} failures\n{}\n", new.len(), new.join("\n"));
    let failed: BTreeSet<String> = old.iter().map(place).collect();
    let mended: Vec<&String> = known.difference(&failed).collect();
    assert!(mended.is_empty() || !filter().is_empty(), "mended, strike from differences.txt: {mended:?}");
}

#[test]
fn kernel_alone() {
    check("kernel_alone", &KernelAlone::new(false));
}

#[test]
fn kernel_with_shared_inputs() {
    check("kernel_with_shared_inputs", &KernelAlone::new(true));
}

#[test]
fn local_session() {
    check("local_session", &InSession::new("", false));
}

#[test]
fn gradients() {
    check("gradients", &InSession::new("", true));
}

#[test]
fn our_server() {
    let cluster = ClusterSpec::parse("localhost=127.0.0.1:0").expect("a cluster");
    let server = Server::start(ServerOptions::new(cluster, Task { job: "localhost".to_string(), index: 0 }));
    check("our_server", &InSession::new(server.expect("it starts").target(), false));
}

#[test]
fn inferred_shapes() {
    let (files, registry, filter) = (Files::read(), data::registry(), filter());
    let mut failures = Vec::new();
    for case in files.cases.iter().filter(|case| case.is_named(&filter)) {
        let complaints = caught(|| check_shapes(&registry, case)).unwrap_or_else(|panic| vec![panic]);
        failures.extend(complaints.iter().map(|complaint| format!("{} {}: {complaint}", case.place, case.op)));
    }
    report("inferred_shapes", failures);
}

#[test]
fn every_op_has_a_case() {
    let files = Files::read();
    let registry = data::registry();
    let graphs = files.graphs.iter().filter_map(|case| case.read(&registry, "").ok());
    let in_graphs: BTreeSet<String> = graphs.flat_map(|program| program.ops()).collect();
    let nodes = files.cases.iter().map(|case| case.op.as_str());
    let covered: BTreeSet<&str> = nodes.chain(in_graphs.iter().map(String::as_str)).collect();
    let missing: BTreeSet<&str> =
        registry.names().filter(|op| !covered.contains(op) && !files.uncovered.contains(*op)).collect();
    assert!(missing.is_empty(), "ops without a case (write one, or list them in uncovered.txt): {missing:?}");
    let listed = files.uncovered.iter().map(String::as_str);
    let stale: Vec<&str> = listed.filter(|op| covered.contains(op) || registry.op(op).is_none()).collect();
    assert!(stale.is_empty(), "ops in uncovered.txt that have a case or no row: {stale:?}");
}

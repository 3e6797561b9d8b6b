//! Every case, on every runtime. `CASE=substring` picks cases by file, line or op.

use crate::{Files, KernelAlone, Runner, caught, check_shapes, run_all};
use std::collections::BTreeSet;

fn check(runner: &dyn Runner) {
    report(run_all(runner, &Files::read(), &filter()));
}

fn filter() -> String {
    std::env::var("CASE").unwrap_or_default()
}

fn report(failures: Vec<String>) {
    assert!(failures.is_empty(), "{} failures\n{}\n", failures.len(), failures.join("\n"));
}

#[test]
fn kernel_alone() {
    check(&KernelAlone::new(false));
}

#[test]
fn kernel_with_shared_inputs() {
    check(&KernelAlone::new(true));
}

#[test]
fn inferred_shapes() {
    let (files, registry, filter) = (Files::read(), ops::registry(), filter());
    let mut failures = Vec::new();
    for case in files.cases.iter().filter(|case| case.is_named(&filter)) {
        let complaints = caught(|| check_shapes(&registry, case)).unwrap_or_else(|panic| vec![panic]);
        failures.extend(complaints.iter().map(|complaint| format!("{} {}: {complaint}", case.place, case.op)));
    }
    report(failures);
}

#[test]
fn every_op_has_a_case() {
    let files = Files::read();
    let covered: BTreeSet<&str> = files.cases.iter().map(|case| case.op.as_str()).collect();
    let registry = ops::registry();
    let missing: BTreeSet<&str> =
        registry.names().filter(|op| !covered.contains(op) && !files.uncovered.contains(*op)).collect();
    assert!(missing.is_empty(), "ops without a case (write one, or list them in an uncovered.txt): {missing:?}");
    let listed = files.uncovered.iter().map(String::as_str);
    let stale: Vec<&str> = listed.filter(|op| covered.contains(op) || registry.op(op).is_none()).collect();
    assert!(stale.is_empty(), "ops in an uncovered.txt that have a case or no row: {stale:?}");
}

//! Names of ops outside `ops`, `data` and `input`: the section of ARCHITECTURE.md against the constants and the code.

use crate::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The constants that all other files use.
const CONSTANTS: &str = "crates/graph/src/builtin_ops.rs";

/// The section with the list.
const SECTION: &str = "## Op names outside `ops`";

/// Every op of the registry: the generated raw builders have one function for each.
fn op_names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let folders = ["crates/ops/src/raw", "crates/data/src/raw"];
    for path in folders.iter().flat_map(|folder| rust_files(&root().join(folder))) {
        let text = fs::read_to_string(&path).expect("a file of raw builders");
        names.extend(text.split(".op(\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_string())));
    }
    assert!(names.len() > 900, "only {} ops were found", names.len());
    names
}

/// The names in backticks in the section.
fn listed() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let section = text.split_once(SECTION).expect("the section about op names").1;
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .map(String::from)
        .collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// True for code that runs in production outside `ops`, `data` and `input`.
fn counts(path: &str) -> bool {
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
    let may_name_ops = ["crates/ops/", "crates/data/", "crates/input/", "crates/conformance/"]
        .iter()
        .any(|folder| path.starts_with(folder));
    path.contains("/src/") && !is_test && !may_name_ops && path != CONSTANTS
}

/// The string literals of a line that are op names. Names given to nodes and scopes do not count.
fn op_literals<'a>(line: &'a str, ops: &BTreeSet<String>) -> Vec<&'a str> {
    let code = if line.trim_start().starts_with("//") { "" } else { line.split(" // ").next().unwrap_or_default() };
    let pieces: Vec<&str> = code.split('"').collect();
    let is_name = |window: &[&'a str]| window[0].ends_with("named(");
    pieces.windows(3).filter(|window| !is_name(window) && ops.contains(window[1])).map(|window| window[1]).collect()
}

#[test]
fn no_code_outside_ops_names_an_op() {
    let (root, ops) = (root(), op_names());
    let mut wrong = Vec::new();
    for path in rust_files(&root.join("crates")) {
        let name = path.strip_prefix(&root).expect("a path in the workspace").to_string_lossy().into_owned();
        if !counts(&name) {
            continue;
        }
        for (number, line) in fs::read_to_string(&path).expect("a source file").lines().enumerate() {
            wrong.extend(op_literals(line, &ops).iter().map(|op| format!("{name}:{}: {op}", number + 1)));
        }
    }
    assert!(
        wrong.is_empty(),
        "these lines name an op; state a fact in its row, use a builder of `ops` or a constant of {CONSTANTS}:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_constants_are_those_in_the_architecture() {
    let ops = op_names();
    let text = fs::read_to_string(root().join(CONSTANTS)).expect("the constants");
    let constants: BTreeSet<String> = text.lines().flat_map(|line| op_literals(line, &ops)).map(String::from).collect();
    let declared = text.lines().filter(|line| line.starts_with("pub const ")).count();
    assert_eq!(constants.len(), declared, "a constant of {CONSTANTS} is not the name of an op, or is there twice");
    assert_eq!(constants, listed(), "{CONSTANTS} and the section '{SECTION}' of ARCHITECTURE.md differ");
}

#[test]
fn literals_of_op_names_are_found() {
    let ops = op_names();
    assert_eq!(op_literals(r#"matches!(op, "Relu" | "Enter")"#, &ops), ["Relu", "Enter"]);
    assert_eq!(op_literals(r#"scope.op("Const").named("Identity") // like "Switch""#, &ops), ["Const"]);
    assert!(op_literals(r#"/// an op like "Relu""#, &ops).is_empty());
    assert!(op_literals(r#"let text = "Relu6 and others";"#, &ops).is_empty());
    assert!(counts("crates/plan/src/prune.rs") && !counts("crates/plan/src/tests/text.rs"));
}

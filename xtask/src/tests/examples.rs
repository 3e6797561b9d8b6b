//! Every public type of the crate `flowgrid` has an example that runs as a doc test.

use crate::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the names of the crate come from.
const ROOTS: [&str; 4] = ["lib.rs", "graphs.rs", "sessions.rs", "training.rs"];
/// Exports that are not in the list: the prelude repeats names, and macros are not types.
const END: &str = "pub mod prelude";

/// A public type and whether its documentation, or that of its re-export, has an example.
struct Type {
    name: String,
    has_example: bool,
}

/// The source up to the prelude.
fn source(file: &str) -> String {
    let text = fs::read_to_string(root().join("crates/flowgrid/src").join(file)).expect("source");
    text.split(END).next().unwrap_or_default().to_string()
}

/// The names of a `pub use` statement: those that begin with a capital letter are types and traits.
fn names(statement: &str) -> Vec<String> {
    let path = statement.trim_start_matches("pub use ").trim_end_matches(';');
    let list = path.split_once('{').map_or_else(|| path.rsplit("::").next().unwrap_or_default(), |(_, list)| list);
    let words = list.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with(char::is_uppercase)).map(str::to_string).collect()
}

/// True if the lines above a declaration hold a code block that is compiled and run.
fn has_example(above: &[&str]) -> bool {
    let docs = above.iter().rev().map(|line| line.trim());
    let docs = docs.take_while(|line| line.starts_with("///") || line.starts_with("#[") || line.starts_with(")]"));
    docs.filter(|line| *line == "/// ```").count() >= 2
}

/// Re-exported types, with the examples of the re-exports.
fn exported(text: &str) -> Vec<Type> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("pub use ")) {
        let rest = lines[at..].iter().position(|line| line.ends_with(';')).expect("an end of the statement");
        let statement: String = lines[at..=at + rest].concat();
        let has_example = has_example(&lines[..at]);
        found.extend(names(&statement).into_iter().map(|name| Type { name, has_example }));
        assert!(line.len() < 200, "a statement of one line: {line}");
    }
    for (at, line) in lines.iter().enumerate() {
        if let Some(name) = declared(line) {
            found.push(Type { name: name.to_string(), has_example: has_example(&lines[..at]) });
        }
    }
    found
}

/// The name of the public type or trait that a line declares.
fn declared(line: &str) -> Option<&str> {
    let kinds = ["pub struct ", "pub enum ", "pub trait ", "pub type "];
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// The types of all crates that have an example where they are declared.
fn declared_with_example() -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let mut found = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(file).expect("source");
        let lines: Vec<&str> = text.lines().collect();
        let with = (0..lines.len()).filter(|&at| has_example(&lines[..at]));
        found.extend(with.filter_map(|at| declared(lines[at])).map(str::to_string));
    }
    found
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn public_types_have_examples() {
    let elsewhere = declared_with_example();
    let types: Vec<Type> = ROOTS.iter().flat_map(|file| exported(&source(file))).collect();
    assert!(types.len() > 40, "only {} types found", types.len());
    let is_bare = |one: &&Type| !one.has_example && !elsewhere.contains(&one.name);
    let bare: Vec<&str> = types.iter().filter(is_bare).map(|one| &*one.name).collect();
    let with = types.len() - bare.len();
    println!("{with} of {} public types have an example", types.len());
    assert!(bare.is_empty(), "without an example: {}", bare.join(", "));
}

#[test]
fn examples_are_found() {
    let text = "/// A.\n///\n/// ```\n/// a();\n/// ```\n#[doc(inline)]\npub use x::A;\n\npub use y::{\n    B,\n    C, d,\n};\n";
    let found: Vec<(String, bool)> = exported(text).into_iter().map(|one| (one.name, one.has_example)).collect();
    let expected = [("A", true), ("B", false), ("C", false)];
    assert_eq!(found, expected.map(|(name, has)| (name.to_string(), has)));
    assert!(!has_example(&["/// ```text", "/// a", "/// ```"]));
}

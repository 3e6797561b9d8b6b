//! The statements of ARCHITECTURE.md that a program can check: paths, protobuf types, statics, threads, printing.

use super::files::sources;
use crate::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The text of ARCHITECTURE.md.
fn document() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md")
}

/// The section of the document under this heading.
fn section(heading: &str) -> String {
    let text = document();
    let begin = text.find(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no section '{heading}'"));
    let rest = &text[begin + 4 + heading.len()..];
    rest[..rest.find("\n## ").unwrap_or(rest.len())].to_string()
}

/// The files in the first column of the table in a section, such as `tensor/src/buffer.rs`.
fn files_of_table(heading: &str) -> BTreeSet<String> {
    let rows = section(heading);
    let cells = rows.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    cells.map(|(file, _)| file.to_string()).collect()
}

/// The path of a source file below `crates`.
fn short(path: &Path) -> String {
    path.strip_prefix(root().join("crates")).expect("a crate").to_string_lossy().into_owned()
}

/// Source files of the crates that are part of the product: no tests, examples or build scripts.
fn product() -> Vec<PathBuf> {
    let mut found = Vec::new();
    sources(&root().join("crates"), &mut found);
    found.retain(|path| {
        let path = short(path);
        path.contains("/src/") && !path.contains("/tests") && !path.starts_with("conformance/")
    });
    assert!(found.len() > 300, "only {} files found", found.len());
    found
}

/// The code of a file: lines that are not comments, up to a test module at its end.
fn code(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("source");
    let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]") || line.ends_with(';'));
    lines.filter(|line| !line.trim_start().starts_with("//")).map(str::to_string).collect()
}

/// The product files of which a line of code satisfies `found`.
fn files_where(found: impl Fn(&str) -> bool) -> BTreeSet<String> {
    product().iter().filter(|path| code(path).iter().any(|line| found(line))).map(|path| short(path)).collect()
}

/// The paths that `a/{b,c}.rs` stands for.
fn expanded(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else { return vec![text.to_string()] };
    let (choices, after) = rest.split_once('}').expect("a closing brace");
    choices.split(',').map(|choice| format!("{before}{choice}{after}")).collect()
}

#[test]
fn every_path_in_the_document_exists() {
    let text = document();
    let quoted = text.split('`').skip(1).step_by(2).filter(|quoted| quoted.ends_with(".rs") && quoted.contains('/'));
    let mut count = 0;
    for path in quoted.flat_map(expanded) {
        let (name, rest) = path.split_once('/').expect("a folder and a file");
        let crates = root().join("crates");
        let places = [root().join(&path), crates.join(&path), crates.join(name).join("src").join(rest)];
        assert!(places.iter().any(|place| place.exists()), "ARCHITECTURE.md names `{path}`, which does not exist");
        count += 1;
    }
    assert!(count > 10, "only {count} paths found");
}

#[test]
fn protobuf_types_stay_at_the_wire() {
    let used = files_where(|line| line.contains("proto::"));
    let wire = |file: &str| file.ends_with("/wire.rs") || file.contains("/wire/");
    // The generated service traits and clients are part of gRPC itself.
    let service = |file: &str| file.starts_with("grpc/src/server/") || file.starts_with("grpc/src/client/");
    let in_ops = |file: &str| file == "ops/src/parsing/mod.rs"; // its own module `proto`
    let wrong: Vec<_> = used.iter().filter(|file| !wire(file) && !service(file) && !in_ops(file)).collect();
    assert!(used.len() > 10, "only {used:?}");
    assert!(wrong.is_empty(), "protobuf types outside `wire`: {wrong:#?}");
}

#[test]
fn statics_are_those_of_the_table() {
    let is_static = |line: &str| {
        let line = line.trim_start().trim_start_matches("thread_local!(").trim_start_matches("pub ");
        line.starts_with("static ") && line.contains(": ")
    };
    assert_eq!(files_where(is_static), files_of_table("Statics"), "left: the code; right: the table 'Statics'");
}

#[test]
fn threads_are_those_of_the_table() {
    let spawns = |line: &str| line.contains("thread::Builder::new()") || line.contains("thread::spawn(");
    assert_eq!(files_where(spawns), files_of_table("Threads"), "left: the code; right: the table 'Threads'");
}

#[test]
fn only_the_program_prints_and_reads_arguments() {
    let prints = |line: &str| {
        ["println!(", "print!(", "env::args", "env::var"].iter().any(|word| line.contains(word))
            && !line.contains("env!(")
    };
    let wrong: Vec<_> = files_where(prints).into_iter().filter(|file| !file.starts_with("cli/")).collect();
    assert!(wrong.is_empty(), "printing, arguments or the environment outside `cli`: {wrong:#?}");
}

#[test]
fn graphs_are_planned_without_time_threads_and_chance() {
    let words = ["std::time", "std::thread", "std::fs", "std::net", "rand::", "Instant::", "SystemTime"];
    let impure = files_where(|line| words.iter().any(|word| line.contains(word)));
    let pure = |file: &&String| ["graph/", "plan/", "gradient/"].iter().any(|name| file.starts_with(name));
    let wrong: Vec<_> = impure.iter().filter(pure).collect();
    assert!(impure.len() > 10, "only {impure:?}");
    assert!(wrong.is_empty(), "time, threads, files or chance in {wrong:#?}");
}

#[test]
fn functions_are_short() {
    let mut lengths = Vec::new();
    for path in product() {
        let text = fs::read_to_string(&path).expect("source");
        lengths.extend(function_lengths(&text).into_iter().map(|length| (length, path.clone())));
    }
    lengths.sort();
    let (longest, file) = lengths.last().expect("functions");
    let ninth = lengths[lengths.len() * 9 / 10].0;
    assert!(*longest <= 60, "a function of {longest} lines in {}", file.display());
    assert!(ninth <= 20, "one function in ten has more than {ninth} lines");
}

/// The numbers of lines of the functions of a formatted file: from `fn` to the brace at the same indentation.
fn function_lengths(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let mut lengths = Vec::new();
    for (begin, line) in lines.iter().enumerate() {
        let body = line.trim_start();
        let indent = &line[..line.len() - body.len()];
        let header = body.split(" fn ").next().unwrap_or_default();
        let begins = body.starts_with("fn ")
            || (body.contains(" fn ") && header.split(' ').all(|word| word.starts_with("pub") || is_qualifier(word)));
        if !begins || body.ends_with(';') || body.ends_with('}') {
            continue;
        }
        let ends = |line: &&str| line.strip_prefix(indent).is_some_and(|rest| rest == "}" || is_declaration_end(rest));
        let length = lines[begin + 1..].iter().position(ends).map_or(0, |last| last + 2);
        if length > 0 && lines[begin + length - 1].ends_with('}') {
            lengths.push(length);
        }
    }
    lengths
}

/// The last line of a function without a body.
fn is_declaration_end(line: &str) -> bool {
    line.starts_with(')') && line.ends_with(';')
}

fn is_qualifier(word: &str) -> bool {
    ["const", "async", "unsafe", "extern", "\"C\"", "in", "super)", "crate)"].contains(&word)
}

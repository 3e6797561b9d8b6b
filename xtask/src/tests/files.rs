//! What every source file must have, and what none may have.

use crate::root;
use std::fs;
use std::path::{Path, PathBuf};

/// The limit on the length of a file; a longer one should be split.
const MAX_LINES: usize = 600;

pub(super) fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

pub(super) fn all() -> Vec<PathBuf> {
    let mut found = Vec::new();
    sources(&root().join("crates"), &mut found);
    sources(&root().join("xtask"), &mut found);
    assert!(found.len() > 50, "only {} files found", found.len());
    found
}

#[test]
fn every_file_begins_with_a_doc_line() {
    let silent: Vec<_> =
        all().into_iter().filter(|path| !fs::read_to_string(path).expect("source").starts_with("//! ")).collect();
    assert!(silent.is_empty(), "no //! line at the top of {silent:#?}");
}

#[test]
fn no_file_is_too_long() {
    // Builders that are generated from the rows are as long as their family.
    let generated = ["ops", "data"].map(|name| root().join("crates").join(name).join("src/raw"));
    let long: Vec<_> = all()
        .into_iter()
        .filter(|path| !generated.iter().any(|folder| path.starts_with(folder)))
        .map(|path| (fs::read_to_string(&path).expect("source").lines().count(), path))
        .filter(|(lines, _)| *lines > MAX_LINES)
        .collect();
    assert!(long.is_empty(), "above {MAX_LINES} lines: {long:#?}");
}

#[test]
fn unsafe_code_is_in_math_and_tensor_only() {
    for entry in fs::read_dir(root().join("crates")).expect("crates") {
        let path = entry.expect("entry").path();
        if path.ends_with("math") || path.ends_with("tensor") {
            continue;
        }
        let top = ["src/lib.rs", "src/main.rs"].map(|file| path.join(file));
        let top = top.iter().find(|file| file.exists()).unwrap_or_else(|| panic!("no top file in {}", path.display()));
        let text = fs::read_to_string(top).expect("source");
        assert!(text.contains("#![forbid(unsafe_code)]"), "{} does not forbid unsafe code", top.display());
    }
    let mut tensor = Vec::new();
    sources(&root().join("crates/tensor/src"), &mut tensor);
    let allowed = ["buffer.rs", "allocator.rs"];
    for path in tensor.iter().filter(|path| !allowed.iter().any(|file| path.ends_with(file))) {
        let text = fs::read_to_string(path).expect("source");
        assert!(!text.contains("unsafe {") && !text.contains("unsafe fn"), "unsafe in {}", path.display());
    }
}

#[test]
fn no_work_is_left_open() {
    let marks = [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["todo", "!("].concat(), ["#[ig", "nore"].concat()];
    for path in all() {
        let text = fs::read_to_string(&path).expect("source");
        for mark in &marks {
            assert!(!text.contains(mark.as_str()), "{mark} in {}", path.display());
        }
    }
}

/// The files that are written by hand: sources, documents, Python programs and cases.
fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if path.is_dir() && !is_hidden && !path.ends_with("target") {
            texts(&path, found);
        } else if path.extension().is_some_and(|ext| ["rs", "md", "py", "case"].iter().any(|known| ext == *known)) {
            found.push(path);
        }
    }
}

#[test]
fn prose_is_plain() {
    // Pronouns for unnamed tasks, threads and counts: text that names them is easier to read.
    let words = ["some|body", "no|body", "who|ever", "who |comes", "so |many"].map(|word| word.replace('|', ""));
    let mut found = Vec::new();
    texts(&root(), &mut found);
    assert!(found.iter().any(|path| path.ends_with("CHANGELOG.md")), "{} files", found.len());
    let mut wrong = Vec::new();
    // The guide names the words it forbids.
    for path in found.into_iter().filter(|path| !path.ends_with("docs/style.md")) {
        let text = String::from_utf8_lossy(&fs::read(&path).expect("a text")).to_lowercase();
        wrong
            .extend(words.iter().filter(|word| text.contains(*word)).map(|word| format!("{word}: {}", path.display())));
    }
    assert!(wrong.is_empty(), "name the task, the thread or the count: {wrong:#?}");
}

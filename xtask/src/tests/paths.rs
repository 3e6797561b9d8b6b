//! Public paths: none repeats a name, as `array::split::split` would.

use crate::root;
use std::fs;
use std::path::{Path, PathBuf};

/// The public modules of a file of a crate, each with its own file.
fn public_modules(file: &Path) -> Vec<(String, PathBuf)> {
    let text = fs::read_to_string(file).expect("a source file");
    let folder = match file.file_name().and_then(|name| name.to_str()) {
        Some("lib.rs" | "mod.rs") => file.parent().expect("a folder").to_path_buf(),
        _ => file.with_extension(""),
    };
    let names = text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    names
        .map(|name| {
            let plain = folder.join(format!("{name}.rs"));
            let path = if plain.exists() { plain } else { folder.join(name).join("mod.rs") };
            (name.to_string(), path)
        })
        .collect()
}

/// The names that the text of a module makes public: its items, what its macros name, and what it exports of others.
fn public_names(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = Vec::new();
    let mut exported = text;
    while let Some((_, rest)) = exported.split_once("\npub use ") {
        let list = rest.split_once(';').map_or(rest, |(list, _)| list);
        let last = list.rsplit_once('{').map_or_else(|| list.rsplit("::").next().unwrap_or(list), |(_, names)| names);
        names.extend(last.split(',').filter_map(|one| one.trim_end_matches(['}', ' ', '\n']).split(' ').next_back()));
        exported = rest;
    }
    let is_kind = |word: &&str| ["const", "enum", "fn", "mod", "static", "struct", "trait", "type"].contains(word);
    for line in text.lines().filter(|line| !line.starts_with("pub use ")) {
        if let Some(item) = line.strip_prefix("pub ") {
            names.extend(item.split(|c| !is_name(c)).find(|word| !is_kind(word)));
        }
        names.extend(line.strip_prefix("    ").and_then(|line| line.split_once(" = \"")).map(|(name, _)| name));
    }
    names
}

/// The paths under a public file that repeat a name.
fn repeated(file: &Path, path: &str, found: &mut Vec<String>) {
    for (name, module) in public_modules(file) {
        let text = fs::read_to_string(&module).expect("the file of a module");
        let path = format!("{path}::{name}");
        if public_names(&text).iter().any(|item| *item == name) {
            found.push(format!("{path}::{name}"));
        }
        repeated(&module, &path, found);
    }
}

#[test]
fn no_public_path_repeats_a_name() {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("crates")).expect("crates") {
        let folder = entry.expect("an entry").path();
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name").to_string();
        if folder.join("src/lib.rs").exists() {
            repeated(&folder.join("src/lib.rs"), &name, &mut found);
        }
    }
    assert!(found.is_empty(), "export these from the module above, and make the inner module private: {found:#?}");
}

#[test]
fn public_names_of_a_module_are_found() {
    let text = "//! Doc.\npub mod a;\npub use a::{b, c as d};\npub use e::f;\npub fn g<T>(x: T) {}\npub const fn h() {}\n\
                pub struct I(u8);\n    j = \"Op\";\npub(crate) fn k() {}\n";
    let mut names = public_names(text);
    names.sort_unstable();
    assert_eq!(names, ["I", "a", "b", "d", "f", "g", "h", "j"]);
}

#[test]
fn the_walk_reaches_the_families_of_ops() {
    let modules = public_modules(&root().join("crates/ops/src/lib.rs"));
    assert!(modules.iter().any(|(name, path)| name == "array" && path.exists()));
}

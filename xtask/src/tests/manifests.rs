//! What the manifest of a published crate must have. CONTRIBUTING.md lists it.

use crate::root;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The categories of crates.io that the crates use. crates.io refuses unknown ones, but not before the upload.
const CATEGORIES: &[&str] = &[
    "algorithms",
    "asynchronous",
    "command-line-utilities",
    "concurrency",
    "data-structures",
    "encoding",
    "filesystem",
    "mathematics",
    "network-programming",
    "rust-patterns",
    "science",
];

/// Keys whose values all crates take from the workspace.
const SHARED: [&str; 4] = [
    "version.workspace = true",
    "edition.workspace = true",
    "rust-version.workspace = true",
    "license.workspace = true",
];

/// The folder and the manifest of every crate that is published.
fn published() -> Vec<(PathBuf, String)> {
    let folders = fs::read_dir(root().join("crates")).expect("crates").map(|entry| entry.expect("entry").path());
    let read = |folder: PathBuf| {
        let text = fs::read_to_string(folder.join("Cargo.toml")).expect("manifest");
        (folder, text)
    };
    let mut found: Vec<_> = folders.map(read).filter(|(_, text)| !text.contains("\npublish = false\n")).collect();
    found.sort();
    assert!(found.len() > 15, "only {} published crates", found.len());
    found
}

/// The value of a key of `[package]`, without the quotes of a string.
fn value<'a>(manifest: &'a str, key: &str) -> Option<&'a str> {
    let package = manifest.split("\n[").next().unwrap_or_default();
    let start = format!("{key} = ");
    package.lines().find_map(|line| line.strip_prefix(&start)).map(|value| value.trim_matches('"'))
}

/// The strings of a list that is written on one line.
fn list(manifest: &str, key: &str) -> Vec<String> {
    let value = value(manifest, key).unwrap_or_default().trim_matches(['[', ']']);
    value.split(',').map(|item| item.trim().trim_matches('"').to_string()).filter(|item| !item.is_empty()).collect()
}

/// What is wrong with a manifest, apart from its place among others.
fn faults(folder: &std::path::Path, manifest: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |holds: bool, fault: &str| {
        if !holds {
            faults.push(fault.to_string());
        }
    };
    let description = value(manifest, "description").unwrap_or_default();
    check((20..=120).contains(&description.chars().count()), "needs a description of 20 to 120 characters");
    check(!description.ends_with('.'), "has a description that ends with a full stop");
    let keywords = list(manifest, "keywords");
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_+".contains(c);
    let fits = |word: &String| word.len() <= 20 && word.chars().all(allowed);
    check((1..=5).contains(&keywords.len()) && keywords.iter().all(fits), "needs one to five keywords");
    let categories = list(manifest, "categories");
    let known = |category: &String| CATEGORIES.contains(&category.as_str());
    check((1..=5).contains(&categories.len()) && categories.iter().all(known), "needs known categories");
    check(value(manifest, "readme") == Some("README.md"), "needs readme = \"README.md\"");
    let name = value(manifest, "name").unwrap_or_default();
    let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
    check(readme.starts_with(&format!("# {name}\n\n")), "needs a README.md that begins with its name");
    check(
        SHARED.iter().all(|line| manifest.contains(line)),
        "must take version, edition and license from the workspace",
    );
    check(manifest.contains("\n[lints]\nworkspace = true"), "must take its lints from the workspace");
    check(!manifest.contains("path = \"../"), "must name crates of this repository with workspace = true");
    faults
}

#[test]
fn published_crates_have_what_crates_io_asks_for() {
    let mut wrong = Vec::new();
    for (folder, manifest) in published() {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_string();
        wrong.extend(faults(&folder, &manifest).into_iter().map(|fault| format!("crates/{name}/Cargo.toml {fault}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_two_crates_have_the_same_description() {
    let mut seen = BTreeMap::new();
    for (folder, manifest) in published() {
        let description = value(&manifest, "description").unwrap_or_default().to_string();
        let other = seen.insert(description, folder.clone());
        assert!(
            other.is_none(),
            "{} and {} have the same description",
            other.unwrap_or_default().display(),
            folder.display()
        );
    }
}

#[test]
fn dependencies_between_crates_have_the_version_of_the_workspace() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).expect("manifest");
    let version = format!("version = \"{}\"", env!("CARGO_PKG_VERSION"));
    let own: Vec<&str> = workspace.lines().filter(|line| line.contains("path = \"crates/")).collect();
    assert!(own.len() > 15, "only {own:?}");
    let without: Vec<_> = own.iter().filter(|line| !line.contains(&version)).collect();
    assert!(without.is_empty(), "crates cannot be published without {version} in {without:#?}");
    for (folder, _) in published() {
        let path = folder.strip_prefix(root()).expect("a folder of this repository").display().to_string();
        let named = own.iter().any(|line| line.contains(&format!("path = \"{path}\"")));
        assert!(named || path == "crates/cli", "{path} is not in [workspace.dependencies]");
    }
}

#[test]
fn faults_of_a_manifest_are_found() {
    let bare =
        "[package]\nname = \"flowgrid-new\"\ndescription.workspace = true\nkeywords = [\"\"]\n\n[dependencies]\n";
    let found = faults(&root().join("crates/status"), bare).join("; ");
    for fault in ["description of 20", "keywords", "categories", "readme", "README.md", "license", "lints"] {
        assert!(found.contains(fault), "{fault} is not in: {found}");
    }
}

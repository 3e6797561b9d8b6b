//! Which crate may use which: the table of ARCHITECTURE.md against every manifest.

use crate::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Crates that every crate above them may use.
const VOCABULARY: &[&str] = &["status", "tensor", "graph"];

/// The table in ARCHITECTURE.md: the name of a crate, and the crates that it may use.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [level, names, _, uses] = cells[..] else { continue };
        if level.parse::<u32>().is_err() {
            continue;
        }
        let uses: BTreeSet<String> = uses.split(',').map(|name| name.trim().to_string()).collect();
        for name in names.split(',') {
            rows.insert(name.trim().trim_matches('`').to_string(), uses.clone());
        }
    }
    rows
}

/// The crates of this workspace that a manifest names as dependencies of the library, not of its tests.
fn dependencies(manifest: &str, known: &BTreeSet<String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut counts = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            counts = line == "[dependencies]";
        } else if counts
            && let Some(name) = line.split(['.', ' ', '=']).next()
            && known.contains(name)
        {
            found.insert(name.to_string());
        }
    }
    found
}

#[test]
fn crates_use_only_what_the_table_allows() {
    let rows = table();
    let known: BTreeSet<String> = rows.keys().cloned().collect();
    assert!(known.len() > 8, "the table has only {known:?}");
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root().join("crates")).expect("crates") {
        let path = entry.expect("entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_string();
        if name == "conformance" {
            continue; // Tests may use every crate.
        }
        let manifest = fs::read_to_string(path.join("Cargo.toml")).expect("manifest");
        let Some(allowed) = rows.get(&name) else {
            wrong.push(format!("{name} is not in the table of ARCHITECTURE.md"));
            continue;
        };
        for used in dependencies(&manifest, &known) {
            let ok = allowed.contains("all above") || allowed.contains(&used) || VOCABULARY.contains(&used.as_str());
            if !ok {
                wrong.push(format!("{name} uses {used}, which its row does not allow"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_below_grpc_knows_the_network() {
    for name in [
        "status",
        "proto",
        "math",
        "tensor",
        "graph",
        "op",
        "ops",
        "data",
        "exec",
        "plan",
        "gradient",
        "cluster",
        "io",
        "layers",
        "membership",
        "durable",
    ] {
        let path = root().join("crates").join(name).join("Cargo.toml");
        let Ok(manifest) = fs::read_to_string(path) else { continue };
        let plain = manifest.lines().filter(|line| !line.contains("optional = true") && !line.contains("dep:"));
        for line in plain {
            for net in ["tokio", "tonic", "hyper"] {
                let named = line.starts_with(net) && !line.starts_with("tonic-prost-build");
                assert!(!named, "{name} uses {net}: {line}");
            }
        }
    }
}

//! Every page of the documentation is tested, and every code block says its language.

use std::path::Path;

/// Languages with a test: `src/docs.rs` compiles Rust, `python/docs_test.py` runs Python and parses JSON and TOML,
/// `crates/cli/src/documented.rs` parses the commands in `sh`. `text` is for diagrams.
const LANGUAGES: [&str; 6] = ["rust", "python", "sh", "json", "toml", "text"];

#[test]
fn every_page_is_a_doc_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listed = include_str!("../docs.rs");
    let mut pages = vec!["README.md".to_string()];
    for entry in std::fs::read_dir(root.join("docs")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        pages.extend(name.ends_with(".md").then(|| format!("docs/{name}")));
    }
    assert!(pages.len() > 5);
    for page in pages {
        assert!(listed.contains(&format!("\"../../../{page}\"")), "{page} is missing in src/docs.rs");
        let text = std::fs::read_to_string(root.join(&page)).unwrap();
        let fences = text.lines().filter_map(|line| line.trim_start().strip_prefix("```"));
        for language in fences.step_by(2) {
            assert!(LANGUAGES.contains(&language), "{page}: '{language}' is not a language of code blocks");
        }
    }
}

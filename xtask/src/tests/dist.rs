//! Options of `cargo xtask dist`, and what maturin is told. A Python test (`wheel_test.py`) installs the packages.

use crate::dist::{Options, artifact_message};

#[test]
fn options_are_read_in_any_order() {
    let options = Options::parse(&["--out", "packages", "--features", "s3,gs", "--program", "flowgrid"]).unwrap();
    let expected =
        Options { program: Some("flowgrid".into()), out: Some("packages".into()), features: "s3,gs".to_string() };
    assert_eq!(options, expected);
    assert_eq!(Options::parse(&[]).unwrap(), Options::default());
}

#[test]
fn wrong_options_are_named() {
    let message = |words: &[&str]| Options::parse(words).unwrap_err().to_string();
    assert_eq!(message(&["--out"]), "--out needs a value");
    assert_eq!(message(&["--fast", "1"]), "unknown option --fast; expected --features, --program or --out");
}

#[test]
fn paths_are_escaped_in_cargos_message() {
    let message = artifact_message("path+file:///a#flowgrid-cli@0.1.0", "/a \"b\"\\c/flowgrid");
    assert!(message.contains(r#""executable":"/a \"b\"\\c/flowgrid""#), "{message}");
    assert!(message.contains(r#""package_id":"path+file:///a#flowgrid-cli@0.1.0""#), "{message}");
}

//! The list of tests that `cargo xtask test --quick` leaves out.

use super::files::sources;
use crate::root;
use crate::test::NEED_PYTHON;
use std::fs;

#[test]
fn tests_that_start_python_or_the_program_are_left_out_of_quick_runs() {
    let folder = root().join("crates/conformance/src/tests");
    let (mut using, mut files) = (0, Vec::new());
    sources(&folder, &mut files);
    for path in files {
        let text = fs::read_to_string(&path).expect("source");
        // `real.rs` finds Python and the program for all tests.
        if !text.contains("use super::real::") {
            continue;
        }
        using += 1;
        let module = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let named = NEED_PYTHON.iter().any(|name| text.contains(&format!("fn {name}(")) || name.contains(module));
        assert!(named, "{module}.rs uses real.rs, but NEED_PYTHON in xtask/src/test.rs names none of its tests");
    }
    assert!(using > 0, "no test uses real.rs");
}

//! Writes what is generated from the rows, the raw builders and `docs/ops.md`: `cargo xtask builders`.
#![forbid(unsafe_code)]

fn main() -> std::io::Result<()> {
    let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["ops", "data"] {
        std::fs::create_dir_all(own.join("..").join(folder).join("src/raw"))?;
    }
    for (name, text) in flowgrid_conformance::raw_builders() {
        std::fs::write(own.join("..").join(name), text)?;
    }
    std::fs::write(own.join("../../docs/ops.md"), flowgrid_conformance::ops_page())
}

//! Writes what is generated from the rows of `ops`, the raw builders and `docs/ops.md`: `cargo xtask builders`.
#![forbid(unsafe_code)]

fn main() -> std::io::Result<()> {
    let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = own.join("../ops/src/raw");
    std::fs::create_dir_all(&folder)?;
    for (name, text) in flowgrid_conformance::raw_builders() {
        std::fs::write(folder.join(name), text)?;
    }
    std::fs::write(own.join("../../docs/ops.md"), flowgrid_conformance::ops_page())
}

//! Writes the raw builders of `ops` from its rows: `cargo xtask builders`.
#![forbid(unsafe_code)]

fn main() -> std::io::Result<()> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../ops/src/raw");
    std::fs::create_dir_all(&folder)?;
    for (name, text) in flowgrid_conformance::raw_builders() {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}

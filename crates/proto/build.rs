//! Compiles the definitions in `proto/` to Rust, without an installed protoc.

use std::path::PathBuf;
use std::{env, error, fs, io};

use protox::prost::Message;

const FOLDER: &str = "proto";

fn main() -> Result<(), Box<dyn error::Error>> {
    println!("cargo:rerun-if-changed={FOLDER}");
    let mut config = tonic_prost_build::Config::new();
    // TensorFlow writes the type URL of an `Any` with this domain.
    config.enable_type_names().type_name_domain(["."], "type.googleapis.com");
    // Most attributes are a type or a number. Boxing the large variants keeps the enum small.
    for kind in ["tensor", "list", "func"] {
        config.boxed(format!(".tensorflow.AttrValue.value.{kind}"));
    }
    let mut definitions = protox::compile(definitions()?, [FOLDER])?;
    // The text format needs the names of fields, but not the comments and positions of the source.
    definitions.file.iter_mut().for_each(|file| file.source_code_info = None);
    let path = PathBuf::from(env::var("OUT_DIR")?).join("descriptors.bin");
    fs::write(path, definitions.encode_to_vec())?;
    let services = env::var_os("CARGO_FEATURE_SERVICES").is_some();
    tonic_prost_build::configure()
        .build_client(services)
        .build_server(services)
        // `bytes` fields are slices of the received message; ordered maps encode the same way every time.
        .bytes(".")
        .btree_map(".")
        .compile_well_known_types(true)
        .compile_fds_with_config(definitions, config)?;
    Ok(())
}

/// The files to compile, in the same order on every machine.
fn definitions() -> io::Result<Vec<PathBuf>> {
    let mut files = fs::read_dir(FOLDER)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "proto"));
    files.sort();
    Ok(files)
}

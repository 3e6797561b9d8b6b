//! `flowgrid data verify`: reads all records of files and checks their checksums.

use super::progress::Progress;
use crate::files;
use crate::output::print_line;
use anyhow::{Result, bail};
use io::rows::Format;
use io::{Compression, FileSystems, RecordReader};

/// Flags of `flowgrid data verify`.
#[derive(clap::Args)]
pub struct Args {
    /// TFRecord or event files; patterns such as `s3://bucket/train-*` are expanded.
    #[arg(required = true)]
    paths: Vec<String>,
}

/// Checks each file, and fails if one is damaged.
pub fn run(args: Args) -> Result<()> {
    let systems = files::systems();
    let mut damaged = 0;
    for path in expanded(&systems, &args.paths)? {
        match verify(&systems, &path) {
            Ok((records, bytes)) => print_line!("{path}: {records} records, {bytes} bytes: ok")?,
            Err(error) => {
                damaged += 1;
                print_line!("{path}: {error}")?;
            }
        }
    }
    match damaged {
        0 => Ok(()),
        1 => bail!("one file is damaged"),
        many => bail!("{many} files are damaged"),
    }
}

fn expanded(systems: &FileSystems, paths: &[String]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for path in paths {
        match path.contains(['*', '?', '[']) && !systems.exists(path)? {
            true => found.extend(systems.glob(path)?),
            false => found.push(path.clone()),
        }
    }
    if found.is_empty() {
        bail!("no file matches {}", paths.join(" "));
    }
    Ok(found)
}

/// The number of records and their bytes; the error says at which offset a record is damaged.
fn verify(systems: &FileSystems, path: &str) -> status::Result<(u64, u64)> {
    let compression = Format::of_file(path).map_or(Compression::None, |(_, compression)| compression);
    let size = systems.stat(path)?.size;
    let mut reader = RecordReader::open_on(systems, path, compression)?;
    let mut progress = Progress::new(size, Default::default());
    while reader.read()?.is_some() {
        progress.row();
    }
    let records = progress.finish();
    // A reader takes a file that ends within a header for one that is still being written.
    if compression == Compression::None && reader.offset() != size {
        let (offset, rest) = (reader.offset(), size - reader.offset());
        return Err(status::Error::new(
            status::Code::DataLoss,
            format!("truncated record at {offset}: the header has 12 bytes, and the file ends after {rest}"),
        ));
    }
    Ok((records, reader.offset()))
}

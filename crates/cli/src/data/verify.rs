//! `flowgrid data verify`: reads all rows of files, and checks what their formats allow to check.

use super::inputs::matching;
use super::progress::Progress;
use crate::files;
use crate::output::print_line;
use anyhow::{Result, bail};
use io::FileSystems;
use io::rows::{Format, RowFile};
use status::{Code, Error};

/// Flags of `flowgrid data verify`.
#[derive(clap::Args)]
pub struct Args {
    /// The files; patterns such as `'s3://bucket/train-*'` are expanded. The name or the first bytes of a file tell whether
    /// it is CSV, JSON lines or Parquet; other files are read as TFRecord files.
    #[arg(required = true)]
    paths: Vec<String>,
}

/// Checks each file, and fails if one is damaged.
pub fn run(args: Args) -> Result<()> {
    let systems = files::systems();
    let paths = args.paths.iter().map(|path| matching(&systems, path)).collect::<Result<Vec<_>>>()?.concat();
    let mut damaged = 0;
    for path in paths {
        match file(&systems, &path).and_then(|file| verify(&file)) {
            Ok(found) => print_line!("{path}: {found}: ok")?,
            // The program lacks something; this says nothing about the file.
            Err(error) if error.code == Code::Unimplemented => return Err(error.into()),
            Err(error) => {
                damaged += 1;
                print_line!("{path}: {}", error.message.strip_prefix(&format!("{path}: ")).unwrap_or(&error.message))?;
            }
        }
    }
    match damaged {
        0 => Ok(()),
        1 => bail!("one file is damaged"),
        many => bail!("{many} files are damaged"),
    }
}

/// The file; without any sign of its format a TFRecord file, whose first record is damaged then.
fn file(systems: &FileSystems, path: &str) -> Result<RowFile, Error> {
    RowFile::open(systems, path).or_else(|error| {
        let (None, compression) = Format::of_content(systems, path)? else { return Err(error) };
        Ok(RowFile { systems: systems.clone(), path: path.to_string(), format: Format::TfRecord, compression })
    })
}

/// What the file contains; the error says where it is damaged.
fn verify(file: &RowFile) -> Result<String, Error> {
    let mut progress = Progress::new(file.size()?);
    if file.format != Format::TfRecord {
        for row in file.rows_counted(progress.read())? {
            row?;
            progress.row();
        }
        return Ok(format!("{} rows, {} bytes", progress.finish(), file.size()?));
    }
    // Records may contain anything, so only their checksums are checked.
    let mut reader = file.records(progress.read())?;
    while reader.read()?.is_some() {
        progress.row();
    }
    Ok(format!("{} records, {} bytes", progress.finish(), reader.offset()))
}

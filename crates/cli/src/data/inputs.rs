//! The files that an argument names, as one sequence of rows.

use anyhow::{Result, bail};
use io::FileSystems;
use io::rows::{Format, Row, RowFile, Schema};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The number of rows from which a schema is guessed.
const SAMPLE: usize = 1000;

/// Files with the same columns.
pub struct Inputs {
    pub files: Vec<RowFile>,
}

impl Inputs {
    /// The files of a name or pattern, whose formats are as given or as their names or first bytes say.
    pub fn find(systems: &FileSystems, name: &str, format: Option<&str>) -> Result<Inputs> {
        let files = matching(systems, name)?.into_iter().map(|path| row_file(systems, &path, format));
        Ok(Inputs { files: files.collect::<Result<_>>()? })
    }

    /// The rows of all files, one file after another. What is read is added to `read`, in bytes.
    pub fn rows(&self, read: &Arc<AtomicU64>) -> impl Iterator<Item = status::Result<Row>> + use<> {
        let read = read.clone();
        self.files.clone().into_iter().flat_map(move |file| match file.rows_counted(&read) {
            Ok(rows) => rows,
            Err(error) => Box::new(std::iter::once(Err(error))),
        })
    }

    /// The size of all files in bytes.
    pub fn size(&self) -> Result<u64> {
        Ok(self.files.iter().map(RowFile::size).sum::<status::Result<u64>>()?)
    }

    /// The first rows and the schema that they suggest, with the columns that the user sets.
    pub fn sample(&self, columns: &[String]) -> Result<(Vec<Row>, Schema)> {
        let rows: Vec<Row> = self.rows(&Arc::default()).take(SAMPLE).collect::<status::Result<_>>()?;
        let mut schema = Schema::guess(&rows);
        if rows.is_empty() {
            for file in &self.files {
                schema.add_unknown(file.columns()?);
            }
        }
        columns.iter().try_for_each(|column| schema.set(column))?;
        Ok((rows, schema))
    }

    /// An error if writing `output` would overwrite one of the files.
    pub fn check_output(&self, systems: &FileSystems, output: &str) -> Result<()> {
        for file in &self.files {
            if systems.is_same_file(&file.path, output)? {
                bail!("{output} is the input {}; write to another file", file.path);
            }
        }
        Ok(())
    }
}

/// The files of a name or pattern, in order.
pub fn matching(systems: &FileSystems, name: &str) -> Result<Vec<String>> {
    if !name.contains(['*', '?', '[']) || systems.exists(name)? {
        return Ok(vec![name.to_string()]);
    }
    let mut found = systems.glob(name)?;
    found.retain(|path| !systems.is_dir(path).unwrap_or(false));
    if found.is_empty() {
        bail!("no file matches {name}");
    }
    Ok(found)
}

/// An existing file, whose format is as given or as its name or first bytes say.
fn row_file(systems: &FileSystems, path: &str, format: Option<&str>) -> Result<RowFile> {
    let Some(format) = format else { return Ok(RowFile::open(systems, path)?) };
    let format = Format::from_name(format)?;
    let compression = match Format::of_file(path) {
        Ok((_, compression)) if compression != io::Compression::None => compression,
        _ => Format::of_content(systems, path)?.1,
    };
    Ok(RowFile { systems: systems.clone(), path: path.to_string(), format, compression })
}

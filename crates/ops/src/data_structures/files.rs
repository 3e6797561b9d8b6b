//! The files that ops read and write: the one place in this crate that touches a disk.

use io::RecordReader;
use status::{Code, Error, Result, unimplemented_op};
use std::io::{Cursor, ErrorKind};
use std::path::{Path, PathBuf};

/// Everything in a file.
pub(crate) fn read(name: &str) -> Result<Vec<u8>> {
    std::fs::read(path(name)).map_err(|error| refusal(name, &error))
}

/// Everything in a file that is compressed as TensorFlow's name for it says; an empty name says it is not.
pub(crate) fn read_encoded(name: &str, encoding: &str) -> Result<Vec<u8>> {
    match encoding {
        "ZLIB" | "GZIP" => Err(unimplemented_op!("Files compressed with {encoding} cannot be read")),
        _ => read(name),
    }
}

/// The records of a record file.
pub(crate) type Records = RecordReader<Cursor<Vec<u8>>>;

/// The records in the contents of a file.
pub(crate) fn records(contents: Vec<u8>) -> Records {
    RecordReader::new(Cursor::new(contents))
}

/// Writes a file anew, with the folders it is in.
pub(crate) fn write(name: &str, contents: &[u8]) -> Result<()> {
    if let Some(folder) = path(name).parent() {
        std::fs::create_dir_all(folder).map_err(|error| refusal(name, &error))?;
    }
    std::fs::write(path(name), contents).map_err(|error| refusal(name, &error))
}

/// The names in a folder, and whether each is a folder itself; none if there is no such folder.
pub(crate) fn list(folder: &str) -> Vec<(String, bool)> {
    let name = if folder.is_empty() { "." } else { folder };
    let entries = std::fs::read_dir(path(name)).into_iter().flatten().flatten();
    let describe = |entry: std::fs::DirEntry| {
        let is_folder = std::fs::metadata(entry.path()).is_ok_and(|found| found.is_dir());
        Some((entry.file_name().into_string().ok()?, is_folder))
    };
    entries.filter_map(describe).collect()
}

/// Whether there is such a file or folder.
pub(crate) fn exists(name: &str) -> bool {
    path(name).exists()
}

fn path(name: &str) -> PathBuf {
    Path::new(name.strip_prefix("file://").unwrap_or(name)).to_path_buf()
}

/// Says what happened in TensorFlow's words.
fn refusal(name: &str, error: &std::io::Error) -> Error {
    let (code, text) = match error.kind() {
        ErrorKind::NotFound => (Code::NotFound, "No such file or directory"),
        ErrorKind::PermissionDenied => (Code::PermissionDenied, "Permission denied"),
        ErrorKind::IsADirectory => (Code::FailedPrecondition, "Is a directory"),
        ErrorKind::NotADirectory => (Code::FailedPrecondition, "Not a directory"),
        ErrorKind::StorageFull => (Code::ResourceExhausted, "No space left on device"),
        _ => return Error::new(Code::Unknown, format!("{name}; {error}")),
    };
    Error::new(code, format!("{name}; {text}"))
}

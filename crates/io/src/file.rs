//! Whole files, and errors that name them.

use bytes::Bytes;
use status::{Code, Error, Result};
use std::io::ErrorKind;
use std::path::Path;

/// All bytes of a file.
pub(crate) fn read(path: &Path) -> Result<Bytes> {
    std::fs::read(path).map(Bytes::from).map_err(|error| failed(path, &error))
}

/// The error of a file that could not be opened or read.
pub(crate) fn failed(path: &Path, error: &std::io::Error) -> Error {
    let code = match error.kind() {
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::PermissionDenied => Code::PermissionDenied,
        _ => Code::Unknown,
    };
    Error::new(code, format!("{}; {error}", path.display()))
}

/// The error of a file whose bytes are not what they should be.
pub(crate) fn data_loss(message: impl Into<String>) -> Error {
    Error::new(Code::DataLoss, message)
}

//! Errors of files, with TensorFlow's codes and wording.

use status::{Code, Error};
use std::io;

/// The error of a file that could not be opened, read or written.
pub(crate) fn failed(path: &str, error: &io::Error) -> Error {
    let text = error.to_string();
    // Rust appends the error number to the system's message; TensorFlow does not.
    let sentence = text.split(" (os error ").next().unwrap_or(&text);
    Error::new(error.raw_os_error().map_or(Code::Unknown, Code::from_errno), format!("{path}; {sentence}"))
}

/// The error of a file with corrupt content.
pub(crate) fn data_loss(message: impl Into<String>) -> Error {
    Error::new(Code::DataLoss, message)
}

//! Errors of files: the code and the words TensorFlow has for what the operating system said.

use status::{Code, Error};
use std::io;

/// The error of a file that could not be opened, read or written.
pub(crate) fn failed(path: &str, error: &io::Error) -> Error {
    let text = error.to_string();
    // Rust adds the number to the system's sentence.
    let sentence = text.split(" (os error ").next().unwrap_or(&text);
    Error::new(error.raw_os_error().map_or(Code::Unknown, code), format!("{path}; {sentence}"))
}

/// The error of a file whose bytes are not what they should be.
pub(crate) fn data_loss(message: impl Into<String>) -> Error {
    Error::new(Code::DataLoss, message)
}

/// What TensorFlow makes of an error number of Linux.
fn code(number: i32) -> Code {
    match number {
        2 | 3 | 6 | 19 => Code::NotFound,      // ENOENT ESRCH ENXIO ENODEV
        1 | 13 | 30 => Code::PermissionDenied, // EPERM EACCES EROFS
        17 | 99 | 114 => Code::AlreadyExists,  // EEXIST EADDRNOTAVAIL EALREADY
        7 | 14 | 22 | 25 | 29 | 33 | 36 | 84 => Code::InvalidArgument, // E2BIG EFAULT EINVAL ENOTTY ESPIPE EDOM …
        9 | 10 | 15 | 16 | 20 | 21 | 26 | 32 | 39 | 98 | 106 | 107 => Code::FailedPrecondition, // EBADF EISDIR ENOTEMPTY …
        12 | 23 | 24 | 28 | 31 | 105 | 122 => Code::ResourceExhausted, // ENOMEM ENFILE EMFILE ENOSPC EMLINK EDQUOT
        27 | 34 | 75 => Code::OutOfRange,                              // EFBIG ERANGE EOVERFLOW
        18 | 38 | 95 => Code::Unimplemented,                           // EXDEV ENOSYS ENOTSUP
        4 | 11 | 37 | 61 | 100..=104 | 108 | 111..=113 => Code::Unavailable, // EINTR EAGAIN ENOLCK ECONNRESET …
        35 | 116 => Code::Aborted,                                     // EDEADLK ESTALE
        62 | 110 => Code::DeadlineExceeded,                            // ETIME ETIMEDOUT
        125 => Code::Cancelled,                                        // ECANCELED
        _ => Code::Unknown,
    }
}

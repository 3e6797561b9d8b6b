//! The error type of all Flowgrid crates: a code, a message and the failing node.
//!
//! Codes have gRPC's numbers, so an [`Error`] travels over the wire without a translation table. The crate defines how
//! errors are built and printed. It does not log them, and it does not decide which are retried.
//!
//! Errors are built with one macro per code, which takes a format string:
//!
//! ```
//! use flowgrid_status::{Code, Result, invalid};
//!
//! fn learning_rate(text: &str) -> Result<f32> {
//!     text.parse().map_err(|_| invalid!("learning rate '{text}' is not a number"))
//! }
//!
//! let error = learning_rate("fast").unwrap_err();
//! assert_eq!(error.code, Code::InvalidArgument);
//! assert_eq!(error.to_string(), "INVALID_ARGUMENT: learning rate 'fast' is not a number");
//! ```
#![forbid(unsafe_code)]

use std::fmt;

/// The kind of an error, numbered as on the wire. Clients choose their exception class by it.
///
/// # Examples
///
/// ```
/// use flowgrid_status::{Code, Error};
///
/// let error = Error::from(std::io::Error::from_raw_os_error(2)); // ENOENT
/// assert_eq!(error.code, Code::NotFound);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
#[allow(missing_docs)] // the names are gRPC's own
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Code {
    /// The code with this number; `Unknown` for numbers that are not defined.
    pub fn from_number(number: i32) -> Code {
        use Code::*;
        const ALL: [Code; 17] = [
            Ok,
            Cancelled,
            Unknown,
            InvalidArgument,
            DeadlineExceeded,
            NotFound,
            AlreadyExists,
            PermissionDenied,
            ResourceExhausted,
            FailedPrecondition,
            Aborted,
            OutOfRange,
            Unimplemented,
            Internal,
            Unavailable,
            DataLoss,
            Unauthenticated,
        ];
        usize::try_from(number).ok().and_then(|i| ALL.get(i).copied()).unwrap_or(Unknown)
    }

    /// TensorFlow's name of the code, as printed in messages: `INVALID_ARGUMENT`.
    pub fn name(self) -> &'static str {
        use Code::*;
        match self {
            Ok => "OK",
            Cancelled => "CANCELLED",
            Unknown => "UNKNOWN",
            InvalidArgument => "INVALID_ARGUMENT",
            DeadlineExceeded => "DEADLINE_EXCEEDED",
            NotFound => "NOT_FOUND",
            AlreadyExists => "ALREADY_EXISTS",
            PermissionDenied => "PERMISSION_DENIED",
            ResourceExhausted => "RESOURCE_EXHAUSTED",
            FailedPrecondition => "FAILED_PRECONDITION",
            Aborted => "ABORTED",
            OutOfRange => "OUT_OF_RANGE",
            Unimplemented => "UNIMPLEMENTED",
            Internal => "INTERNAL",
            Unavailable => "UNAVAILABLE",
            DataLoss => "DATA_LOSS",
            Unauthenticated => "UNAUTHENTICATED",
        }
    }

    /// The code TensorFlow assigns to an error number of Linux.
    pub fn from_errno(number: i32) -> Code {
        match number {
            2 | 3 | 6 | 19 => Code::NotFound,      // ENOENT ESRCH ENXIO ENODEV
            1 | 13 | 30 => Code::PermissionDenied, // EPERM EACCES EROFS
            17 | 99 | 114 => Code::AlreadyExists,  // EEXIST EADDRNOTAVAIL EALREADY
            7 | 14 | 22 | 25 | 29 | 33 | 36 | 84 => Code::InvalidArgument, // E2BIG EFAULT EINVAL ENOTTY ESPIPE EDOM …
            9 | 10 | 15 | 16 | 20 | 21 | 26 | 32 | 39 | 98 | 106 | 107 => Code::FailedPrecondition, // EBADF EISDIR …
            12 | 23 | 24 | 28 | 31 | 105 | 122 => Code::ResourceExhausted, // ENOMEM ENFILE EMFILE ENOSPC EMLINK …
            27 | 34 | 75 => Code::OutOfRange,      // EFBIG ERANGE EOVERFLOW
            18 | 38 | 95 => Code::Unimplemented,   // EXDEV ENOSYS ENOTSUP
            4 | 11 | 37 | 61 | 100..=104 | 108 | 111..=113 => Code::Unavailable, // EINTR EAGAIN ENOLCK ECONNRESET …
            35 | 116 => Code::Aborted,             // EDEADLK ESTALE
            62 | 110 => Code::DeadlineExceeded,    // ETIME ETIMEDOUT
            125 => Code::Cancelled,                // ECANCELED
            _ => Code::Unknown,
        }
    }
}

/// An error: the same type in every crate, and as a client sees it.
///
/// # Examples
///
/// ```
/// use flowgrid_status::{Code, Error};
///
/// let error = Error::new(Code::NotFound, "no file model.ckpt").at_node("restore");
/// assert_eq!(error.to_string(), "NOT_FOUND: no file model.ckpt\n\t [[{{node restore}}]]");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of error.
    pub code: Code,
    /// What was asked and what was found, in the user's names; no full stop.
    pub message: String,
    /// True for a consequence of another error, such as a cancelled receive. When the errors of a step are merged, a
    /// derived one is dropped if its cause is known.
    pub derived: bool,
}

/// A value or an [`Error`].
///
/// # Examples
///
/// ```
/// use flowgrid_status::{Code, Result};
///
/// fn lines(path: &str) -> Result<usize> {
///     Ok(std::fs::read_to_string(path)?.lines().count())
/// }
///
/// assert_eq!(lines("/no/such/file").unwrap_err().code, Code::NotFound);
/// ```
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with this code and message.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into(), derived: false }
    }

    /// The same error, marked as a consequence of another.
    pub fn derived(mut self) -> Error {
        self.derived = true;
        self
    }

    /// The same error with the name of the failing node appended, unless it names one already. TensorFlow's Python client
    /// looks for this mark and adds the line of source code that created the node.
    pub fn at_node(mut self, name: &str) -> Error {
        if !self.message.contains("[[{{node ") {
            self.message.push_str(&format!("\n\t [[{{{{node {name}}}}}]]"));
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

impl std::error::Error for Error {}

/// The code follows from the error number of the operating system, as in TensorFlow. The message is the system's; a caller
/// that knows the path should add it.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        let code = error.raw_os_error().map_or(Code::Unknown, Code::from_errno);
        let text = error.to_string();
        // Rust appends the number to the system's message; TensorFlow does not.
        Error::new(code, text.split(" (os error ").next().unwrap_or(&text))
    }
}

/// An `InvalidArgument` error from a format string.
#[macro_export]
macro_rules! invalid {
    ($($arg:tt)*) => { $crate::Error::new($crate::Code::InvalidArgument, format!($($arg)*)) };
}

/// A `NotFound` error from a format string.
#[macro_export]
macro_rules! not_found {
    ($($arg:tt)*) => { $crate::Error::new($crate::Code::NotFound, format!($($arg)*)) };
}

/// An `Unimplemented` error from a format string.
#[macro_export]
macro_rules! unimplemented_op {
    ($($arg:tt)*) => { $crate::Error::new($crate::Code::Unimplemented, format!($($arg)*)) };
}

/// An `Internal` error from a format string.
#[macro_export]
macro_rules! internal {
    ($($arg:tt)*) => { $crate::Error::new($crate::Code::Internal, format!($($arg)*)) };
}

/// A `FailedPrecondition` error from a format string.
#[macro_export]
macro_rules! failed_precondition {
    ($($arg:tt)*) => { $crate::Error::new($crate::Code::FailedPrecondition, format!($($arg)*)) };
}

/// A `ResourceExhausted` error from a format string.
#[macro_export]
macro_rules! exhausted {
    ($($arg:tt)*) => { $crate::Error::new($crate::Code::ResourceExhausted, format!($($arg)*)) };
}

/// An `OutOfRange` error from a format string.
#[macro_export]
macro_rules! out_of_range {
    ($($arg:tt)*) => { $crate::Error::new($crate::Code::OutOfRange, format!($($arg)*)) };
}

/// A `Cancelled` error from a format string.
#[macro_export]
macro_rules! cancelled {
    ($($arg:tt)*) => { $crate::Error::new($crate::Code::Cancelled, format!($($arg)*)) };
}

/// An `Aborted` error from a format string.
#[macro_export]
macro_rules! aborted {
    ($($arg:tt)*) => { $crate::Error::new($crate::Code::Aborted, format!($($arg)*)) };
}

/// An `AlreadyExists` error from a format string.
#[macro_export]
macro_rules! already_exists {
    ($($arg:tt)*) => { $crate::Error::new($crate::Code::AlreadyExists, format!($($arg)*)) };
}

/// An `Unavailable` error from a format string.
#[macro_export]
macro_rules! unavailable {
    ($($arg:tt)*) => { $crate::Error::new($crate::Code::Unavailable, format!($($arg)*)) };
}

#[cfg(test)]
mod tests;

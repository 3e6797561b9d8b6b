//! I am the one error: a code, a sentence, a place.
#![forbid(unsafe_code)]

use std::fmt;

/// What went wrong, numbered as on the wire; clients pick their exception class by it.
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
    /// The code with this number; numbers nobody defined become `Unknown`.
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

    /// TensorFlow's spelling, as it appears inside joined messages: `INVALID_ARGUMENT`.
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
}

/// The one error of all crates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What kind of error.
    pub code: Code,
    /// What was asked and what was found, in the user's names; no full stop.
    pub message: String,
    /// A consequence of another error: dropped when errors are merged, if a cause is known.
    pub derived: bool,
}

/// A value or the one error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with this code and sentence.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into(), derived: false }
    }

    /// The same error, marked as a consequence of another.
    pub fn derived(mut self) -> Error {
        self.derived = true;
        self
    }

    /// The same error with the place it happened appended, once: the client finds this mark
    /// and shows the user's own source line.
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

//! Errors of HDFS: the code, the URL of the file and the message of the name node.

use hdfs_native::HdfsError;
use status::{Code, Error};

/// The error of a file.
pub(crate) fn failed(name: &str, error: &HdfsError) -> Error {
    match error {
        HdfsError::FileNotFound(_) => Error::new(Code::NotFound, format!("{name}; No such file or directory")),
        other => Error::new(code(other), format!("{name}; {other}")),
    }
}

fn code(error: &HdfsError) -> Code {
    match error {
        HdfsError::AlreadyExists(_) => Code::AlreadyExists,
        HdfsError::IsADirectoryError(_) | HdfsError::OperationFailed(_) => Code::FailedPrecondition,
        HdfsError::InvalidPath(_) | HdfsError::InvalidArgument(_) | HdfsError::UrlParseError(_) => {
            Code::InvalidArgument
        }
        HdfsError::ChecksumError | HdfsError::BlocksNotFound(_) => Code::DataLoss,
        HdfsError::UnsupportedErasureCodingPolicy(_) | HdfsError::UnsupportedFeature(_) => Code::Unimplemented,
        HdfsError::IOError(error) if error.kind() == std::io::ErrorKind::TimedOut => Code::DeadlineExceeded,
        HdfsError::IOError(_) | HdfsError::DataTransferError(_) => Code::Unavailable,
        HdfsError::SASLError(_) | HdfsError::NoSASLMechanism | HdfsError::GSSAPIError(..) => Code::Unauthenticated,
        HdfsError::RPCError(class, _) | HdfsError::FatalRPCError(class, _) => exception(class),
        _ => Code::Unknown,
    }
}

/// The code of a Java exception.
fn exception(class: &str) -> Code {
    match class.rsplit('.').next().unwrap_or(class) {
        "FileNotFoundException" => Code::NotFound,
        "AccessControlException" | "AuthorizationException" => Code::PermissionDenied,
        "FileAlreadyExistsException" => Code::AlreadyExists,
        "PathIsNotEmptyDirectoryException" | "ParentNotDirectoryException" => Code::FailedPrecondition,
        "DSQuotaExceededException" | "NSQuotaExceededException" | "QuotaExceededException" => Code::ResourceExhausted,
        "StandbyException" | "SafeModeException" | "RetriableException" => Code::Unavailable,
        _ => Code::Unknown,
    }
}

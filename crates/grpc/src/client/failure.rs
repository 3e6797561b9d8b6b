//! Describes why a task cannot be reached.

use std::error::Error;
use std::io::ErrorKind;
use tonic::Status;

/// The message of `tonic` when an answer ends without trailers.
const CUT_OFF: &str = "protocol error: missing grpc-status trailer";

/// The reason if the transport failed; `None` if the other task answered with an error.
pub(crate) fn of_transport(status: &Status) -> Option<String> {
    if let Some(source) = status.source() {
        return Some(reason(source));
    }
    if status.message().starts_with(CUT_OFF) {
        return Some("the connection was closed".to_string());
    }
    let foreign = status.message().starts_with("grpc-status header missing")
        || status.message().starts_with("invalid compression flag");
    foreign.then(|| format!("it speaks another protocol ({})", status.message()))
}

/// The most specific of an error and its causes.
pub(crate) fn reason(error: &(dyn Error + 'static)) -> String {
    let mut texts = Vec::new();
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>()
            && let Some(text) = of_io(io)
        {
            return text.to_string();
        }
        texts.push(error.to_string());
        cause = error.source();
    }
    let all = texts.join(": ");
    if all.contains("dns error") || all.contains("failed to lookup address") {
        return format!("its name does not resolve ({})", texts.last().map_or("", |text| text));
    }
    let foreign = ["frame with invalid size", "invalid preface", "PROTOCOL_ERROR", "FRAME_SIZE_ERROR"];
    if foreign.iter().any(|text| all.contains(text)) || all.contains("unspecific protocol error") {
        return format!("it speaks another protocol ({})", texts.last().map_or("", |text| text));
    }
    if all.contains("deadline has elapsed") || all.contains("timed out") {
        return "the connection timed out".to_string();
    }
    texts.pop().unwrap_or_default()
}

fn of_io(error: &std::io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused",
        ErrorKind::ConnectionReset => "the connection was reset",
        ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => "the connection was closed",
        ErrorKind::HostUnreachable => "no route to the host",
        ErrorKind::NetworkUnreachable => "no route to the network",
        ErrorKind::TimedOut => "the connection timed out",
        _ => return None,
    })
}

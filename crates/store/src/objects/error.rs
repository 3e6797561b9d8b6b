//! Errors of object stores: the code, the URL of the file and the message of the store, without credentials.

use object_store::client::{HttpError, HttpErrorKind};
use status::{Code, Error};
use std::error::Error as StdError;

/// Bytes shown of a response that is not XML.
const SHOWN: usize = 400;

/// The error of a file.
pub(super) fn failed(name: &str, error: &object_store::Error, secrets: &[String]) -> Error {
    let code = code(error);
    let text = sentence(code, error);
    Error::new(code, scrubbed(format!("{name}; {text}"), secrets))
}

fn code(error: &object_store::Error) -> Code {
    use object_store::Error as E;
    match error {
        E::NotFound { .. } => Code::NotFound,
        E::AlreadyExists { .. } => Code::AlreadyExists,
        E::Precondition { .. } | E::NotModified { .. } => Code::FailedPrecondition,
        E::PermissionDenied { .. } => Code::PermissionDenied,
        E::Unauthenticated { .. } => Code::Unauthenticated,
        E::NotSupported { .. } | E::NotImplemented { .. } => Code::Unimplemented,
        E::InvalidPath { .. } | E::UnknownConfigurationKey { .. } => Code::InvalidArgument,
        other => transport(other),
    }
}

/// The code of a transport error, or of a response without a variant of its own.
fn transport(error: &object_store::Error) -> Code {
    if let Some(number) = status_number(&error.to_string()) {
        return match number {
            400 => Code::InvalidArgument,
            401 => Code::Unauthenticated,
            403 => Code::PermissionDenied,
            404 => Code::NotFound,
            408 => Code::DeadlineExceeded,
            416 => Code::OutOfRange,
            429 | 500..=599 => Code::Unavailable,
            _ => Code::Unknown,
        };
    }
    let kind = chain(error).find_map(|cause| cause.downcast_ref::<HttpError>().map(HttpError::kind));
    match kind {
        Some(HttpErrorKind::Timeout) => Code::DeadlineExceeded,
        Some(HttpErrorKind::Decode) => Code::DataLoss,
        Some(_) => Code::Unavailable,
        None => Code::Unknown,
    }
}

/// The HTTP status number in an error text.
fn status_number(text: &str) -> Option<u16> {
    let (_, after) = text.split_once("status code: ")?;
    after.get(..3)?.parse().ok()
}

fn chain<'a>(error: &'a object_store::Error) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(error.source(), |cause: &&'a (dyn StdError + 'static)| (*cause).source())
}

fn sentence(code: Code, error: &object_store::Error) -> String {
    let text = error.to_string();
    if let Some(said) = said(&text) {
        return said;
    }
    if code == Code::NotFound {
        return "No such file or directory".to_string();
    }
    let shown: String = text.chars().take(SHOWN).collect();
    // The message of the operating system or TLS is at the end of the chain only.
    match chain(error).last().map(ToString::to_string) {
        Some(cause) if !shown.contains(&cause) => format!("{}: {cause}", shown.trim_end()),
        _ => shown.trim_end().to_string(),
    }
}

/// The message in the XML of a response; the rest repeats the request, including its signature.
fn said(text: &str) -> Option<String> {
    let element = |name: &str| {
        let (_, after) = text.split_once(&format!("<{name}>"))?;
        after.split_once(&format!("</{name}>")).map(|(value, _)| value.to_string())
    };
    let code = element("Code")?;
    Some(match element("Message") {
        Some(message) => format!("{code}: {}", message.trim_end_matches('.')),
        None => code,
    })
}

/// The text without secrets and without the query of URLs, where Azure puts shared access signatures.
fn scrubbed(text: String, secrets: &[String]) -> String {
    let text = secrets.iter().fold(text, |text, secret| text.replace(secret.as_str(), "[hidden]"));
    let mut shown = String::with_capacity(text.len());
    for (at, word) in text.split(' ').enumerate() {
        if at > 0 {
            shown.push(' ');
        }
        match word.split_once('?') {
            Some((url, _)) if url.contains("http://") || url.contains("https://") => shown.push_str(url),
            _ => shown.push_str(word),
        }
    }
    shown
}

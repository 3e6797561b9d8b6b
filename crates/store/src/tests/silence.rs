//! Stores that are unreachable, or that accept a request and never respond.

use crate::{StoreOptions, file_systems};
use status::Code;
use std::net::TcpListener;
use std::time::Duration;

fn options(address: &str) -> StoreOptions {
    let url = format!("http://{address}");
    let mut options = StoreOptions::new()
        .with("AWS_ENDPOINT_URL", &url)
        .with("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
        .with("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
        .with_retries(1, Duration::from_secs(2));
    options.request_timeout = Duration::from_millis(300);
    options
}

#[cfg(feature = "s3")]
#[test]
fn a_store_that_is_not_there_is_unavailable() {
    // A port that was free a moment ago, so that connections are refused.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let error = file_systems(&options(&address)).read("s3://bucket/file").unwrap_err();
    assert_eq!(error.code, Code::Unavailable, "{error}");
    assert!(error.message.starts_with("s3://bucket/file; ") && error.message.contains("refused"), "{error}");
}

#[cfg(feature = "s3")]
#[test]
fn a_store_that_never_answers_ends_in_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let error = file_systems(&options(&address)).read("s3://bucket/file").unwrap_err();
    assert_eq!(error.code, Code::DeadlineExceeded, "{error}");
    assert!(!error.message.contains("AKIAEXAMPLE") && !error.message.contains("wJalrXUtnFEMI"), "{error}");
    drop(listener);
}

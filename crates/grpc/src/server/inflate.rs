//! Decompresses the requests of clients that compress.

use crate::server::MAX_MESSAGE;
use bytes::Bytes;
use flate2::read::{GzDecoder, ZlibDecoder};
use http::header::HeaderValue;
use http_body_util::{BodyExt, Full, Limited};
use status::{Result, exhausted, internal, invalid, unimplemented_op};
use std::io::Read;
use tonic::body::Body;

/// The header with the compression of a request's messages.
const ENCODING: &str = "grpc-encoding";
/// Before every message: a byte for its compression, four for its length.
const PREFIX: usize = 5;

/// Whether the messages of a request may be compressed.
pub(crate) fn is_compressed(request: &http::Request<Body>) -> bool {
    request.headers().get(ENCODING).is_some_and(|encoding| encoding != "identity")
}

/// The request with its one message decompressed.
pub(crate) async fn inflated(request: http::Request<Body>) -> Result<http::Request<Body>> {
    let (mut head, body) = request.into_parts();
    let encoding = head.headers.remove(ENCODING).unwrap_or_else(|| HeaderValue::from_static("identity"));
    let body = Limited::new(body, MAX_MESSAGE).collect().await;
    let body = body.map_err(|error| invalid!("The request cannot be read: {error}"))?.to_bytes();
    // A message that compression would make larger is not compressed.
    let plain = match body.first() {
        Some(1) => {
            let work = move || inflate(encoding.as_bytes(), &body[body.len().min(PREFIX)..], MAX_MESSAGE);
            let message = tokio::task::spawn_blocking(work).await.map_err(|error| internal!("{error}"))??;
            Bytes::from(message)
        }
        _ => body,
    };
    Ok(http::Request::from_parts(head, Body::new(Full::new(plain))))
}

/// Decompresses a message and adds its prefix; an error if it has more than `most` bytes.
pub(crate) fn inflate(encoding: &[u8], message: &[u8], most: usize) -> Result<Vec<u8>> {
    let mut plain = vec![0; PREFIX];
    let limit = most as u64 + 1;
    let read = match encoding {
        b"gzip" => GzDecoder::new(message).take(limit).read_to_end(&mut plain),
        b"deflate" => ZlibDecoder::new(message).take(limit).read_to_end(&mut plain),
        other => {
            let name = String::from_utf8_lossy(other);
            return Err(unimplemented_op!("Content is compressed with `{name}` which isn't supported"));
        }
    };
    let length = read.map_err(|error| invalid!("The request cannot be decompressed: {error}"))?;
    if length > most {
        return Err(exhausted!("A message has more than {most} bytes when it is decompressed"));
    }
    plain[1..PREFIX].copy_from_slice(&(length as u32).to_be_bytes());
    Ok(plain)
}

//! Compressed messages: they are decompressed; malformed and too large ones are refused.

use crate::server::inflate::inflate;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use status::{Code, Result};
use std::io::Write;

fn zipped(encoding: &str, data: &[u8]) -> Vec<u8> {
    let (mut gzip, mut zlib) =
        (GzEncoder::new(Vec::new(), Compression::fast()), ZlibEncoder::new(Vec::new(), Compression::fast()));
    gzip.write_all(data).and_then(|()| zlib.write_all(data)).expect("compressed");
    if encoding == "gzip" { gzip.finish() } else { zlib.finish() }.expect("compressed")
}

fn code(result: Result<Vec<u8>>) -> Option<Code> {
    result.err().map(|error| error.code)
}

#[test]
fn compressed_messages_are_decompressed() {
    for encoding in ["gzip", "deflate"] {
        for size in [0, 1, 70_000] {
            let data: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let message = inflate(encoding.as_bytes(), &zipped(encoding, &data), size).expect("inflated");
            assert_eq!(message[..5], [&[0][..], &(size as u32).to_be_bytes()].concat());
            assert_eq!(message[5..], data);
        }
    }
}

#[test]
fn messages_that_are_too_large_or_malformed_are_refused() {
    let bomb = zipped("gzip", &[0; 1 << 20]);
    assert_eq!(code(inflate(b"gzip", &bomb, (1 << 20) - 1)), Some(Code::ResourceExhausted));
    assert_eq!(code(inflate(b"gzip", &bomb[..bomb.len() / 2], 1 << 20)), Some(Code::InvalidArgument));
    assert_eq!(code(inflate(b"deflate", &bomb, 1 << 20)), Some(Code::InvalidArgument));
    assert_eq!(code(inflate(b"br", &bomb, 1 << 20)), Some(Code::Unimplemented));
}

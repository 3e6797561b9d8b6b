//! DecodeCompressed: decompresses strings.

use super::zstd;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use graph::Output;
use op::shapes::unchanged;
use op::{Kernel, Op, Setup, unary};
use status::{Code, Error, Result, invalid};
use std::io::Read;
use tensor::{Bytes, Tensor};

pub(crate) const OPS: &[Op] = parsers! {
    "DecodeCompressed(bytes: string) -> output: string; compression_type: string = \"\"", unchanged, kernel;
};

/// A string may become this long: as in TensorFlow, and so that a small one cannot fill the memory.
const MOST: u64 = i32::MAX as u64;

/// Each string decompressed; `kind` is `ZLIB`, `GZIP`, `ZSTD` or empty.
pub fn decode_compressed(bytes: &Output, kind: &str) -> Output {
    bytes.scope().op("DecodeCompressed").input(bytes).attr("compression_type", kind).output()
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let decode = match setup.string("compression_type")?.as_str() {
        "" => return Ok(unary(|_, strings| Ok(strings)).free()),
        "ZLIB" => |string: &Bytes| decompress(ZlibDecoder::new(&**string)),
        "GZIP" => |string: &Bytes| decompress(MultiGzDecoder::new(&**string)),
        "ZSTD" => |string: &Bytes| zstd::unpacked(string, MOST),
        _ => return Err(invalid!("Only ZLIB, ZSTD, GZIP or NONE are supported compressions")),
    };
    Ok(unary(move |_, strings| {
        let decoded = strings.strings()?.iter().map(decode).collect::<Result<Vec<Bytes>>>()?;
        Tensor::from_strings(strings.shape(), decoded)
    })
    .heavy())
}

/// All output of a decoder. Truncated input yields what could be decoded.
fn decompress(decoder: impl Read) -> Result<Bytes> {
    let mut bytes = Vec::new();
    match decoder.take(MOST).read_to_end(&mut bytes) {
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            Err(Error::new(Code::DataLoss, format!("inflate() failed with error -3: {error}")))
        }
        _ => Ok(bytes.into()),
    }
}

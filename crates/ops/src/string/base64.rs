//! Web-safe base64: EncodeBase64, DecodeBase64.

use graph::Output;
use op::shapes::unchanged;
use op::{Grad, Kernel, Op, PLAIN, Setup, unary};
use status::{Result, invalid};
use tensor::{Bytes, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "EncodeBase64(input: string) -> output: string; pad: bool = false",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: encode_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DecodeBase64(input: string) -> output: string",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: decode_kernel,
        facts: PLAIN,
    },
];

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Each string in web-safe base64, with `=` at the end if `pad`.
pub fn encode_base64(input: &Output, pad: bool) -> Output {
    input.scope().op("EncodeBase64").input(input).attr("pad", pad).output()
}

/// Decodes the strings that `encode_base64` returns.
pub fn decode_base64(input: &Output) -> Output {
    input.scope().op("DecodeBase64").input(input).output()
}

fn encode_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let pad = setup.bool("pad")?;
    Ok(unary(move |_, input| super::text::each(input, |string| encoded(string, pad))))
}

/// Three bytes become four letters.
pub(crate) fn encoded(bytes: &[u8], pad: bool) -> Bytes {
    let mut out = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        out.extend((0..=group.len()).map(|letter| LETTERS[(bits >> (18 - 6 * letter) & 63) as usize]));
        if pad {
            out.extend(std::iter::repeat_n(b'=', 3 - group.len()));
        }
    }
    out.into()
}

fn decode_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, input| {
        let strings = input.strings()?.iter().map(|string| decoded(string)).collect::<Result<Vec<_>>>()?;
        Tensor::from_strings(input.shape(), strings)
    }))
}

fn decoded(text: &[u8]) -> Result<Bytes> {
    let letters = match text {
        [letters @ .., b'=', b'='] if text.len().is_multiple_of(4) => letters,
        [letters @ .., b'='] if text.len().is_multiple_of(4) => letters,
        letters => letters,
    };
    if letters.len() % 4 == 1 {
        return Err(invalid!("Base64 string length cannot be 1 modulo 4."));
    }
    let mut out = Vec::with_capacity(letters.len() / 4 * 3 + 2);
    for group in letters.chunks(4) {
        let mut bits = 0_u32;
        for &letter in group {
            let value = LETTERS.iter().position(|&other| other == letter);
            bits = bits << 6 | value.ok_or_else(|| invalid!("Invalid character found in base64."))? as u32;
        }
        bits <<= 6 * (4 - group.len());
        out.extend((0..group.len() - 1).map(|byte| (bits >> (16 - 8 * byte)) as u8));
    }
    Ok(out.into())
}

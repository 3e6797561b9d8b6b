//! Ops that map one string to another: StringLower, StringUpper, StringStrip, StringLength.

use graph::Output;
use op::shapes::unchanged;
use op::{Grad, Kernel, Op, PLAIN, Setup, unary};
use status::{Result, invalid};
use tensor::{Bytes, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "StringLower(input: string) -> output: string; encoding: string = \"\"",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| case_kernel(setup, <[u8]>::to_ascii_lowercase, str::to_lowercase),
        facts: PLAIN,
    },
    Op {
        def: "StringUpper(input: string) -> output: string; encoding: string = \"\"",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| case_kernel(setup, <[u8]>::to_ascii_uppercase, str::to_uppercase),
        facts: PLAIN,
    },
    Op {
        def: "StringStrip(input: string) -> output: string",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: strip_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StringLength(input: string) -> output: int32; unit: {\"BYTE\", \"UTF8_CHAR\"} = \"BYTE\"",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: length_kernel,
        facts: PLAIN,
    },
];

/// Converts all letters to lower case; `encoding` is empty for ASCII only, or `utf-8`.
pub fn string_lower(input: &Output, encoding: &str) -> Output {
    input.scope().op("StringLower").input(input).attr("encoding", encoding).output()
}

/// Converts all letters to upper case; `encoding` is empty for ASCII only, or `utf-8`.
pub fn string_upper(input: &Output, encoding: &str) -> Output {
    input.scope().op("StringUpper").input(input).attr("encoding", encoding).output()
}

/// Without white space at both ends.
pub fn string_strip(input: &Output) -> Output {
    input.scope().op("StringStrip").input(input).output()
}

/// The length of each string, in bytes.
pub fn string_length(input: &Output) -> Output {
    input.scope().op("StringLength").input(input).output()
}

/// Each string replaced by another.
pub(super) fn each(mut input: Tensor, change: impl Fn(&Bytes) -> Bytes) -> Result<Tensor> {
    for string in input.strings_mut()? {
        *string = change(string);
    }
    Ok(input)
}

/// White space of C's default locale.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

fn case_kernel(setup: &Setup<'_>, ascii: fn(&[u8]) -> Vec<u8>, unicode: fn(&str) -> String) -> Result<Kernel> {
    let encoding = setup.string("encoding")?;
    match encoding.as_str() {
        "" => Ok(unary(move |_, input| each(input, |string| ascii(string).into()))),
        "utf-8" => Ok(unary(move |_, input| {
            each(input, |string| unicode(&String::from_utf8_lossy(string)).into_bytes().into())
        })),
        other => Err(invalid!("only utf-8 or '' (no encoding) is supported, received {other}")),
    }
}

fn strip_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, input| {
        each(input, |string| {
            let start = string.iter().position(|&byte| !is_space(byte)).unwrap_or(string.len());
            let end = string.iter().rposition(|&byte| !is_space(byte)).map_or(start, |last| last + 1);
            string.slice(start..end)
        })
    }))
}

fn length_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let characters = setup.string("unit")? == "UTF8_CHAR";
    Ok(unary(move |_, input| {
        let length = |string: &Bytes| if characters { starts(string) } else { string.len() };
        let lengths: Vec<i32> = input.strings()?.iter().map(|string| length(string) as i32).collect();
        Tensor::from_slice(input.shape(), &lengths)
    }))
}

/// How many bytes begin a character: all but those that continue one.
fn starts(string: &[u8]) -> usize {
    string.iter().filter(|&&byte| begins_character(byte)).count()
}

/// Whether a byte is not the continuation of a character in UTF-8.
pub(super) fn begins_character(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

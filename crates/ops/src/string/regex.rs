//! Regular expressions: RegexFullMatch, RegexReplace and their static variants.

use super::regex_syntax::translated;
use graph::Output;
use op::shapes::unchanged;
use op::{Grad, Kernel, Op, PLAIN, Setup, binary, many, outputs, unary};
use parking_lot::Mutex;
use regex::bytes::Regex;
use status::{Result, invalid};
use tensor::{Bytes, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "RegexFullMatch(input: string, pattern: string) -> output: bool",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: full_match_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StaticRegexFullMatch(input: string) -> output: bool; pattern: string",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: static_full_match_kernel,
        facts: PLAIN,
    },
    Op {
        def: "RegexReplace(input: string, pattern: string, rewrite: string) -> output: string; \
              replace_global: bool = true",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: replace_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StaticRegexReplace(input: string) -> output: string; pattern: string; rewrite: string; \
              replace_global: bool = true",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: static_replace_kernel,
        facts: PLAIN,
    },
];

/// Whether the whole of each string matches a pattern.
pub fn regex_full_match(input: &Output, pattern: &str) -> Output {
    input.scope().op("StaticRegexFullMatch").input(input).attr("pattern", pattern).output()
}

/// Replaces every match of a pattern by `rewrite`, in which `\1` is the first group.
pub fn regex_replace(input: &Output, pattern: &str, rewrite: &str) -> Output {
    let node = input.scope().op("StaticRegexReplace").input(input).attr("pattern", pattern);
    node.attr("rewrite", rewrite).output()
}

fn compiled(pattern: &[u8], whole: bool) -> Result<Regex> {
    let text = String::from_utf8_lossy(pattern);
    let translated = translated(&text);
    let anchored = if whole { format!(r"\A(?:{translated})\z") } else { translated };
    Regex::new(&anchored).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_string();
        invalid!("Invalid pattern: {text}, error: {reason}")
    })
}

/// The pattern compiled last: most often it is the same in every step.
struct Latest(Mutex<Option<(Bytes, Regex)>>);

impl Latest {
    fn new() -> Latest {
        Latest(Mutex::new(None))
    }

    fn get(&self, pattern: &Tensor, whole: bool) -> Result<Regex> {
        if pattern.shape().rank() != 0 {
            return Err(invalid!("Pattern must be scalar, but received {}", pattern.shape()));
        }
        let pattern = pattern.to_string_scalar()?;
        let mut latest = self.0.lock();
        if let Some((known, regex)) = &*latest
            && *known == pattern
        {
            return Ok(regex.clone());
        }
        let regex = compiled(&pattern, whole)?;
        *latest = Some((pattern, regex.clone()));
        Ok(regex)
    }
}

fn matches(regex: &Regex, input: &Tensor) -> Result<Tensor> {
    let found: Vec<bool> = input.strings()?.iter().map(|string| regex.is_match(string)).collect();
    Tensor::from_slice(input.shape(), &found)
}

fn full_match_kernel(_: &Setup<'_>) -> Result<Kernel> {
    let latest = Latest::new();
    Ok(binary(move |_, input, pattern| matches(&latest.get(&pattern, true)?, &input)).heavy())
}

fn static_full_match_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let regex = compiled(&setup.bytes("pattern")?, true)?;
    Ok(unary(move |_, input| matches(&regex, &input)).heavy())
}

fn replace_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (global, latest) = (setup.bool("replace_global")?, Latest::new());
    Ok(many(move |_, mut inputs| {
        let (input, pattern, rewrite) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let regex = latest.get(&pattern, false)?;
        if rewrite.shape().rank() != 0 {
            return Err(invalid!("Rewrite must be scalar, but received {}", rewrite.shape()));
        }
        let rewrite = Rewrite::read(&rewrite.to_string_scalar()?, &regex);
        Ok(outputs![replaced(&regex, rewrite.as_ref(), input, global)?])
    })
    .heavy())
}

fn static_replace_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (regex, global) = (compiled(&setup.bytes("pattern")?, false)?, setup.bool("replace_global")?);
    let rewrite = Rewrite::read(&setup.bytes("rewrite")?, &regex);
    Ok(unary(move |_, input| replaced(&regex, rewrite.as_ref(), input, global)).heavy())
}

/// A rewrite that makes no sense replaces nothing, as RE2 has it.
fn replaced(regex: &Regex, rewrite: Option<&Rewrite>, input: Tensor, global: bool) -> Result<Tensor> {
    let Some(rewrite) = rewrite else { return Ok(input) };
    super::text::each(input, |string| {
        let most = if global { usize::MAX } else { 1 };
        let (mut out, mut end) = (Vec::with_capacity(string.len()), 0);
        for found in regex.captures_iter(string).take(most) {
            let Some(whole) = found.get(0) else { continue };
            out.extend_from_slice(&string[end..whole.start()]);
            rewrite.write(&found, &mut out);
            end = whole.end();
        }
        if end == 0 && out.is_empty() {
            return string.clone();
        }
        out.extend_from_slice(&string[end..]);
        out.into()
    })
}

/// A parsed replacement.
struct Rewrite(Vec<Piece>);

enum Piece {
    Text(u8),
    Group(usize),
}

impl Rewrite {
    /// Reads `\0` to `\9` and `\\`; none if there is another escape, or no such group.
    fn read(rewrite: &[u8], regex: &Regex) -> Option<Rewrite> {
        let mut pieces = Vec::new();
        let mut bytes = rewrite.iter();
        while let Some(&byte) = bytes.next() {
            pieces.push(match byte {
                b'\\' => match bytes.next()? {
                    b'\\' => Piece::Text(b'\\'),
                    digit if digit.is_ascii_digit() => Piece::Group(usize::from(digit - b'0')),
                    _ => return None,
                },
                byte => Piece::Text(byte),
            });
        }
        let fits = |piece: &Piece| match piece {
            Piece::Group(group) => *group < regex.captures_len(),
            Piece::Text(_) => true,
        };
        pieces.iter().all(fits).then_some(Rewrite(pieces))
    }

    fn write(&self, found: &regex::bytes::Captures<'_>, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                Piece::Text(byte) => out.push(*byte),
                Piece::Group(group) => out.extend_from_slice(found.get(*group).map_or(&[], |part| part.as_bytes())),
            }
        }
    }
}

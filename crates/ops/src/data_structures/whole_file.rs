//! Files as values: reading and writing them whole, and finding them by pattern.

use super::files;
use graph::{Node, Output, ShapeQuery};
use op::shapes::{none, scalar};
use op::{Kernel, Op, Setup, many, outputs, unary};
use status::{Result, invalid};
use tensor::{Bytes, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = rows! {
    "ReadFile(filename: string) -> contents: string", scalar, read_kernel;
    "WriteFile(filename: string, contents: string); stateful", none, write_kernel;
    "MatchingFiles(pattern: string) -> filenames: string", vector, matching_kernel;
};

/// The contents of a file.
pub fn read_file(name: &Output) -> Output {
    name.scope().op("ReadFile").input(name).output()
}

/// Writes a file anew.
pub fn write_file(name: &Output, contents: &Output) -> Node {
    name.scope().op("WriteFile").input(name).input(contents).node()
}

/// The names of all files that match one of the patterns, sorted.
pub fn matching_files(patterns: &Output) -> Output {
    patterns.scope().op("MatchingFiles").input(patterns).output()
}

fn vector(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(1)])
}

fn name_of(tensor: &Tensor) -> Result<String> {
    if tensor.shape().rank() != 0 {
        return Err(invalid!("Input filename tensor must be scalar, but had shape: {}", tensor.shape()));
    }
    Ok(String::from_utf8_lossy(&tensor.to_string_scalar()?).into_owned())
}

fn read_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, name| Ok(Tensor::string(files::read(&name_of(&name)?)?))).heavy())
}

fn write_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let (name, contents) = (name_of(&inputs.tensor(0)?)?, inputs.tensor(1)?);
        if contents.shape().rank() != 0 {
            return Err(invalid!("Contents tensor must be scalar, but had shape: {}", contents.shape()));
        }
        files::write(&name, &contents.to_string_scalar()?)?;
        Ok(outputs![])
    })
    .heavy())
}

fn matching_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, patterns| {
        if patterns.shape().rank() > 1 {
            return Err(invalid!(
                "Input patterns tensor must be scalar or vector, but had shape: {}",
                patterns.shape()
            ));
        }
        let mut found: Vec<String> =
            patterns.strings()?.iter().flat_map(|pattern| matches(&String::from_utf8_lossy(pattern))).collect();
        found.sort();
        Tensor::from_strings([found.len()], found.into_iter().map(Bytes::from).collect())
    })
    .heavy())
}

/// Everything whose name matches a pattern, folder by folder.
fn matches(pattern: &str) -> Vec<String> {
    let (mut found, rest) = match pattern.strip_prefix('/') {
        Some(rest) => (vec!["/".to_string()], rest),
        None => (vec![String::new()], pattern),
    };
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    for (i, part) in parts.iter().enumerate() {
        let last = i + 1 == parts.len();
        found = found.iter().flat_map(|folder| step(folder, part, last)).collect();
    }
    found.retain(|name| !name.is_empty());
    found
}

/// What a part of a pattern matches in a folder; only folders, if the pattern goes on.
fn step(folder: &str, part: &str, last: bool) -> Vec<String> {
    let joined = |name: &str| match folder {
        "" => name.to_string(),
        folder if folder.ends_with('/') => format!("{folder}{name}"),
        folder => format!("{folder}/{name}"),
    };
    if !part.contains(['*', '?', '[', '\\']) {
        return Some(joined(part)).filter(|name| files::exists(name)).into_iter().collect();
    }
    let entries = files::list(folder).into_iter();
    let fits = entries.filter(|(name, is_folder)| (last || *is_folder) && is_match(part.as_bytes(), name.as_bytes()));
    fits.map(|(name, _)| joined(&name)).collect()
}

/// Whether a name matches a pattern of `*`, `?`, `[a-z]`, `[^a-z]` and escaped characters.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star = None;
    while n < name.len() {
        match one(&pattern[p..], name[n]) {
            Some(length) => (p, n) = (p + length, n + 1),
            None if pattern.get(p) == Some(&b'*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            None => match star {
                // What the last star took was too little: let it take one more.
                Some((after, taken)) => {
                    star = Some((after, taken + 1));
                    (p, n) = (after, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// How much of a pattern one byte matches, if its beginning does.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match *pattern.first()? {
        b'*' => None,
        b'?' => Some(1),
        b'\\' => (pattern.get(1) == Some(&byte)).then_some(2),
        b'[' => {
            let end = pattern.iter().skip(2).position(|&byte| byte == b']')? + 2;
            let (negated, set) = match pattern[1] {
                b'^' | b'!' => (true, &pattern[2..end]),
                _ => (false, &pattern[1..end]),
            };
            let mut within = false;
            let mut i = 0;
            while i < set.len() {
                match set[i..] {
                    [low, b'-', high, ..] => {
                        within |= (low..=high).contains(&byte);
                        i += 3;
                    }
                    [single, ..] => {
                        within |= single == byte;
                        i += 1;
                    }
                    [] => break,
                }
            }
            (within != negated).then_some(end + 1)
        }
        plain => (plain == byte).then_some(1),
    }
}
